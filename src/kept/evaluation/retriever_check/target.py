"""The retriever under audit: loaded by name, called, its exceptions reported."""

import asyncio
import importlib
import inspect
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from kept.errors import InputError
from kept.evaluation.retriever_check.hits import Hit, hits_of

KS = ("k", "top_k", "n", "limit", "n_results", "num_results", "size", "top_n")
METHODS = ("invoke", "retrieve", "run", "search", "similarity_search_with_score")
SHOWN = 5

Call = Callable[[str, int], Any]


@dataclass(frozen=True, slots=True)
class Target:
    """A retriever as a function; with *takes_k* the number of hits can be chosen."""

    name: str
    call: Call
    takes_k: bool

    def __call__(self, question: str, k: int) -> tuple[Hit, ...]:
        """Return its hits, or raise with its exception."""
        try:
            returned = self.call(question, k)
            if inspect.iscoroutine(returned):
                returned = asyncio.run(returned)
            return hits_of(returned)
        except InputError as error:
            msg = f"{self.name}: {error}"
            raise InputError(msg) from None
        except (Exception, SystemExit) as error:
            msg = f"{self.name} raised {located(error)} for the question {question!r}"
            raise InputError(msg) from error


def target_of(retriever: object, name: str = "") -> Target:
    """Return *retriever* as a target.

    It is a function of a question and optionally the number wanted, or an object
    with the method of LangChain, LlamaIndex or Haystack.
    """
    if inspect.isclass(retriever):
        called = name or retriever.__name__
        msg = f"{called} is a class; expected an instance or function"
        raise InputError(msg)
    function = retriever
    if not inspect.isroutine(retriever):
        methods = (getattr(retriever, method, None) for method in METHODS)
        function = next(filter(callable, methods), retriever)
    if not callable(function):
        called = name or repr(retriever)
        msg = f"{called} cannot be called; expected a function or retriever"
        raise InputError(msg)
    called = name or getattr(function, "__qualname__", type(retriever).__name__)
    k_name, takes_k = _k_of(function)

    def call(question: str, k: int) -> Any:  # noqa: ANN401 -- whatever it returns
        if not takes_k:
            return function(question)
        return function(question, **{k_name: k}) if k_name else function(question, k)

    return Target(called, call, takes_k)


def loaded(reference: str) -> Target:
    """Import the retriever that ``module:name`` or ``file.py:name`` names."""
    module_name, _, name = reference.partition(":")
    if not module_name or not name:
        msg = f"{reference!r} names no retriever; expected module:function"
        raise InputError(msg)
    if module_name.endswith(".py") or "/" in module_name:
        path = Path(module_name)
        # Its siblings have to be importable, as when the file is run.
        sys.path.insert(0, str(path.parent.resolve()))
        module_name = path.stem
    # A console script does not have the current folder on the path.
    sys.path.insert(0, str(Path.cwd()))
    module = _imported(module_name)
    found: object = module
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is None:
        there = ", ".join(_functions(module)[:SHOWN]) or "nothing that can be called"
        msg = f"{module.__name__!r} has no {name!r}; there is: {there}"
        raise InputError(msg)
    return target_of(found, reference)


def located(error: BaseException) -> str:
    """Return an exception of foreign code with its file and line, in one sentence."""
    if isinstance(error, SyntaxError):
        return f"SyntaxError: {error.msg} ({error.filename}, line {error.lineno})"
    ours = str(Path(__file__).parent)
    theirs = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith((ours, "<frozen"))
        and Path(frame.filename).parent.name != "importlib"
    ]
    text = " ".join(str(error).split())
    kind = type(error).__name__
    sentence = f"{kind}: {text}" if text else kind
    if not theirs:
        return sentence
    # The user's own line says more than one deep inside a library.
    outside = [frame for frame in theirs if "site-packages" not in frame.filename]
    frame = (outside or theirs)[-1]
    return f"{sentence} ({frame.filename}, line {frame.lineno})"


def _k_of(function: Callable[..., Any]) -> tuple[str, bool]:
    """Return the keyword for k, if it has one, and whether it takes a k at all."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # of a compiled module: assume a second argument
        return "", True
    by_name = {
        p.name
        for p in parameters
        if p.kind in {p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY}
    }
    named = next((name for name in KS if name in by_name), "")
    required = [
        p
        for p in parameters
        if p.kind in {p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD}
        and p.default is p.empty
    ]
    return named, bool(named) or len(required) > 1


def _imported(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name is not None and name.startswith(error.name)
        msg = (
            f"there is no module {name!r} here; looked in {Path.cwd()} and where "
            "Python looks. Run it from the folder of your module"
            if missing
            else f"importing {name!r} failed: {located(error)}"
        )
        raise InputError(msg) from None
    except (Exception, SystemExit) as error:  # noqa: BLE001 -- theirs, whatever it is
        msg = f"importing {name!r} failed: {located(error)}"
        raise InputError(msg) from None


def _functions(module: ModuleType) -> list[str]:
    return sorted(
        known
        for known, value in vars(module).items()
        if callable(value)
        and not known.startswith("_")
        and getattr(value, "__module__", "") == module.__name__
    )
