"""The commands, by the names that people type."""

import typer

from kept.doors.cli import (
    ask,
    calibrate,
    demo,
    evaluate,
    explain,
    ingest,
    manage,
    mcp,
    migrate,
    references,
    search,
    select,
    serve,
    settings,
    version,
)
from kept.doors.cli import check_retriever as audit
from kept.doors.cli import maintenance as upkeep

app = typer.Typer(
    name="kept",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

app.callback(
    invoke_without_command=True,
    help="The passages that deserve to be cited, and for every candidate why.",
)(version.before_commands)
app.command()(ingest.ingest)
app.command()(search.search)
app.command()(select.select)
app.command()(ask.ask)
app.command()(explain.why)
app.command("why-not")(explain.why_not)
app.command()(explain.replay)
app.command("diff-config")(explain.diff_config)
app.command()(settings.settings)
app.command()(manage.documents)
app.command()(manage.ledger)
app.command()(manage.aliases)
app.command()(manage.delete)
app.add_typer(upkeep.models_app, name="models")
app.add_typer(references.references_app, name="references")
app.add_typer(evaluate.eval_app, name="eval")
app.command()(evaluate.compare)
app.command()(calibrate.calibrate)
app.command()(evaluate.sweep)
app.command()(upkeep.reembed)
app.command()(upkeep.doctor)
app.command()(migrate.migrate)
app.command()(serve.serve)
app.command()(mcp.mcp)
app.command("audit-retriever")(audit.audit_retriever)
app.command()(demo.demo)
