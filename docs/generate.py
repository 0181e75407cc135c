"""Generate the reference pages from the code; ``--check`` fails if any is stale."""

import inspect
import sys
from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any

import typer
import typer.main
from manual import man_page
from pydantic_settings import BaseSettings

import kept
from kept.doors.cli.app import whole_app
from kept.doors.http.app import routes_only
from kept.doors.http.problems import CODES
from kept.doors.http.settings import ServiceSettings
from kept.kernel.presets import PRESETS
from kept.kernel.presets.configuration import range_of
from kept.kernel.record import Reason, Refused, Verdict
from kept.kernel.stages import STAGES
from kept.knowledge_base.settings import Settings
from kept.models.settings import JudgeSettings, LLMSettings

REFERENCE = Path(__file__).parent / "reference"
MANUAL = Path(__file__).parent / "man" / "kept.1"
Spec = dict[str, Any]
BOUND = ("self", "cls")
NOTE = "<!-- Written by docs/generate.py; change the code instead. -->"


def settings_page() -> Iterator[str]:
    """Yield every setting with its variable, range, default and description."""
    yield "# Settings"
    yield NOTE
    yield (
        "Every setting is read once, from the environment; command-line options and a "
        "tenant's own overrides take precedence.\n"
        "A value out of range is rejected at startup, with the variable's name, the "
        "value and the range.\n"
        "The command line warns about a mistyped variable, one that has the prefix "
        "`KEPT_` or that of the preset in use but is no setting, and names the closest "
        "setting."
    )
    yield from _settings("The knowledge base", Settings)
    for preset in PRESETS.values():
        yield from _settings(f"Preset `{preset.name}`", preset.settings, preset.summary)
    yield from _settings("Language models", LLMSettings)
    yield from _settings("The judge", JudgeSettings)
    yield from _settings("The service", ServiceSettings)


def _settings(
    title: str, settings: type[BaseSettings], summary: str = ""
) -> Iterator[str]:
    yield f"## {title}"
    if summary:
        yield summary
    rows = ["| variable | accepts | default | meaning |", "|---|---|---|---|"]
    for name, field in settings.model_fields.items():
        default = field.get_default(call_default_factory=True)
        variable = _variables(settings, name)
        text = " ".join((field.description or "").split())
        rows.append(
            f"| {variable} | {_cell(range_of(field))} | `{_cell(_plain(default))}` "
            f"| {_cell(text)} |"
        )
    yield "\n".join(rows)


def _variables(settings: type[BaseSettings], name: str) -> str:
    alias = settings.model_fields[name].validation_alias
    choices = getattr(alias, "choices", None)
    if choices:
        names = dict.fromkeys(str(choice).upper() for choice in choices)
        return ", ".join(f"`{name}`" for name in names)
    if isinstance(alias, str):
        return f"`{alias.upper()}`"
    prefix = settings.model_config.get("env_prefix", "")
    return f"`{prefix}{name}`".upper()


def _plain(value: object) -> str:
    if value is None:
        return "none"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def reasons_page() -> Iterator[str]:
    """Yield every reason with its sentence."""
    yield "# Reasons"
    yield NOTE
    yield "Every decision in a record names one of these."
    rows = ["| reason | meaning |", "|---|---|"]
    rows += [f"| `{reason.value}` | {reason.doc} |" for reason in Reason]
    yield "\n".join(rows)
    yield "## Verdicts"
    yield ", ".join(f"`{verdict.value}`" for verdict in Verdict) + "."
    yield "If a stage has no decision on a candidate, it kept the candidate."
    yield "## Refusals"
    refusals = " or ".join(f"`{refused.value}`" for refused in Refused)
    yield f"A whole question is refused with the reason {refusals}."


def stages_page() -> Iterator[str]:
    """Yield every stage with its description and parameters."""
    yield "# Stages"
    yield NOTE
    yield "A pipeline is an ordered list of these stages; a disabled stage is left out."
    for name, stage in sorted(STAGES.items()):
        yield f"## `{name}`"
        yield inspect.cleandoc(stage.__doc__ or "")
        rows = [
            f"- `{field.name}`: `{_type(field.type)}`"
            + ("" if field.default is MISSING else f", default `{field.default}`")
            for field in fields(stage)  # type: ignore[arg-type]  # stages are dataclasses
        ]
        if rows:
            yield "\n".join(rows)


def _type(annotation: object) -> str:
    return getattr(annotation, "__name__", str(annotation))


def cli_page() -> Iterator[str]:
    """Yield every command with its options."""
    yield "# Command line"
    yield NOTE
    yield (
        "[Exit codes](exit-codes.md) have a page of their own; `man kept` shows this "
        "reference in a terminal.\n"
        "`kept --version` prints the version, the commit it was built from, the "
        "versions of Python, SQLite and the store schema, and the installed extras; "
        "`kept --version --json` prints them as JSON.\n"
        "`kept --install-completion` installs completion of commands and options for "
        "your shell."
    )
    command = typer.main.get_command(whole_app())
    yield from _command(command, typer.Context(command, info_name="kept"), "kept")


def _command(
    command: Any,  # noqa: ANN401 -- typer brings its own click
    context: Any,  # noqa: ANN401
    path: str,
) -> Iterator[str]:
    if hasattr(command, "list_commands"):
        for name in sorted(command.list_commands(context)):
            child = command.get_command(context, name)
            below = typer.Context(child, info_name=name, parent=context)
            yield from _command(child, below, f"{path} {name}")
        return
    yield f"## `{path}`"
    yield inspect.cleandoc(command.help or "")
    arguments = " ".join(command.collect_usage_pieces(context))
    yield f"```\n{path} {arguments}\n```"
    records = [
        parameter.get_help_record(context)
        for parameter in command.params
        if parameter.param_type_name == "option" and "--help" not in parameter.opts
    ]
    rows = [
        f"| `{_cell(names)}` | {_cell(' '.join(meaning.split()))} |"
        for names, meaning in records
    ]
    if rows:
        yield "\n".join(["| option | meaning |", "|---|---|", *rows])


def python_page() -> Iterator[str]:
    """Yield the public names with their signatures, fields and summaries."""
    yield "# Python"
    yield NOTE
    yield (
        "The public names of `import kept`.\n"
        "Keyword settings are [those of the knowledge base]"
        "(settings.md#the-knowledge-base), in lower case and without `KEPT_`: "
        '`kept.open("./kb", embedder="hash")`.'
    )
    for name in kept.__all__:
        thing = getattr(kept, name)
        yield f"## `kept.{name}`"
        yield _summary(thing)
        if not inspect.isclass(thing):
            yield f"```\nkept.{name}{_call(thing)}\n```"
            continue
        if is_dataclass(thing):
            held = [f.name for f in fields(thing) if f.name[0] != "_"]
            yield "Fields: " + ", ".join(f"`{field}`" for field in held) + "."
        yield from _members_of(thing)


def _members_of(owner: type) -> Iterator[str]:
    """Yield the methods and properties that a class itself defines."""
    rows = []
    for name, member in vars(owner).items():
        method = getattr(member, "fget", None) or getattr(member, "__func__", member)
        if name.startswith("_") or not inspect.isfunction(method):
            continue
        called = "" if isinstance(member, property) else _call(method)
        rows.append(f"- `{name}{called}`: {_summary(method)}")
    if rows:
        yield "\n".join(rows)
    bases = [b.__name__ for b in owner.__bases__ if b.__name__ in kept.__all__]
    if bases:
        yield "And all of " + ", ".join(f"`kept.{base}`" for base in bases) + "."


def _call(function: Callable[..., object]) -> str:
    """Return the signature of a function: names and defaults, without types."""
    given = inspect.signature(function).parameters.values()
    plain = [p.replace(annotation=p.empty) for p in given if p.name not in BOUND]
    return str(inspect.Signature(plain))


def _summary(thing: object) -> str:
    first = (inspect.getdoc(thing) or "").partition("\n\n")[0]
    return " ".join(first.split())


def http_page() -> Iterator[str]:
    """Yield every route with its parameters, request body and response."""
    yield "# HTTP"
    yield NOTE
    yield (
        "Every route under `/v1` and `/retrieval` needs a key: "
        "`Authorization: Bearer KEY`, `X-API-Key: KEY`, or the cookie of a session.\n"
        "Errors have [one shape](error-codes.md).\n"
        "`GET /openapi.json` returns all of this as an OpenAPI document.\n"
        "`HEAD` works wherever `GET` does, with the same headers and no body.\n"
        "[Run the service](../how-to/run-the-service.md) explains how to start it."
    )
    schema = routes_only().openapi()
    for tag in schema["tags"]:
        yield f"## {tag['description']}"
        for path, operations in schema["paths"].items():
            for method, operation in operations.items():
                if tag["name"] in operation["tags"]:
                    yield from _route(schema, f"{method.upper()} {path}", operation)


def _route(schema: Spec, name: str, operation: Spec) -> Iterator[str]:
    yield f"### `{name}`"
    yield inspect.cleandoc(operation["description"])
    rows = [
        (p["name"], f"{p['in']}, {_shape(p['schema'])}", p.get("description", ""))
        for p in operation.get("parameters", [])
    ]
    body = operation.get("requestBody", {}).get("content", {})
    for content in body.values():
        rows += _members(schema, content["schema"])
    if rows:
        lines = [f"| `{n}` | {_cell(kind)} | {_cell(text)} |" for n, kind, text in rows]
        yield "\n".join(["| field | kind | meaning |", "|---|---|---|", *lines])
    answers = [
        f"{status}: {_shape(content['schema'])}"
        for status, response in operation["responses"].items()
        if status.startswith("2")
        for content in response.get("content", {}).values()
        if "schema" in content
    ]
    if answers:
        yield "Returns " + "; ".join(answers) + "."


def _members(schema: Spec, reference: Spec) -> list[tuple[str, str, str]]:
    named = reference.get("$ref", "").rpartition("/")[2]
    shape = schema["components"]["schemas"].get(named, {})
    needed = shape.get("required", ())
    return [
        (
            name,
            "body, " + _shape(member) + (", required" if name in needed else ""),
            " ".join(member.get("description", "").split()),
        )
        for name, member in shape.get("properties", {}).items()
    ]


def _shape(member: Spec) -> str:
    if "$ref" in member:
        return f"`{member['$ref'].rpartition('/')[2]}`"
    if "anyOf" in member:
        return " or ".join(dict.fromkeys(_shape(one) for one in member["anyOf"]))
    if member.get("type") == "array":
        return f"list of {_shape(member.get('items', {}))}"
    if "enum" in member:
        return " or ".join(f"`{one}`" for one in member["enum"])
    return str(member.get("const") or member.get("type", "anything"))


def errors_page() -> Iterator[str]:
    """Yield every error code of the service."""
    yield "# Error codes"
    yield NOTE
    yield (
        "Every error of the service is `application/problem+json` (RFC 9457) with the "
        "members `type`, `title`, `status`, `detail`, `instance` and `code`; for an "
        "invalid request, `errors` has the place and the fault of each field.\n"
        "`instance` is the id of the request; the service's log and the header "
        "`X-Request-Id` have the same id.\n"
        "The routes that OpenAI's clients call (`/v1/embeddings`, `/v1/models`, "
        '`/v1/vector_stores`) answer `{"error": {message, type, param, code}}` '
        "instead, and `/retrieval` Dify's `error_code` and `error_msg`."
    )
    rows = ["| code | status | meaning | what to do |", "|---|---|---|---|"]
    rows += [
        f"| `{name}` | {code.status} | {code.title} | {code.advice} |"
        for name, code in CODES.items()
    ]
    yield "\n".join(rows)


PAGES = {
    "settings.md": settings_page,
    "reasons.md": reasons_page,
    "stages.md": stages_page,
    "cli.md": cli_page,
    "python.md": python_page,
    "http.md": http_page,
    "error-codes.md": errors_page,
}


def stale() -> list[str]:
    """Return the names of the pages that differ from what the code generates."""
    return [
        path.name
        for path, text in written().items()
        if not path.exists() or path.read_text("utf-8") != text
    ]


def written() -> dict[Path, str]:
    """Return the text of every generated page, by path."""
    pages = {REFERENCE / name: rendered(page()) for name, page in PAGES.items()}
    return pages | {MANUAL: man_page()}


def rendered(blocks: Iterator[str]) -> str:
    """Join blocks into a page."""
    return "\n\n".join(blocks) + "\n"


def main() -> None:
    """Write the pages, or with ``--check`` exit with an error if any is stale."""
    if "--check" in sys.argv:
        outdated = stale()
        if outdated:
            sys.exit(f"stale: {', '.join(outdated)}; run 'make docs'")
        return
    for path, text in written().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
