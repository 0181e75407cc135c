"""The target: a retriever by its name, called safely, its faults told as its own."""

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

from kept.auditing.hits import Hit, hits_of
from kept.errors import InputError

KS = ("k", "top_k", "n", "limit", "n_results", "num_results", "size", "top_n")
METHODS = ("invoke", "retrieve", "run", "search", "similarity_search_with_score")
SHOWN = 5

Call = Callable[[str, int], Any]


@dataclass(frozen=True, slots=True)
class Target:
    """A retriever that can be asked.

    With *takes_k* it can be told how many are wanted.
    """

    name: str
    call: Call
    takes_k: bool

    def __call__(self, question: str, k: int) -> tuple[Hit, ...]:
        """Return what it finds, or say how it failed."""
        try:
            returned = self.call(question, k)
            if inspect.iscoroutine(returned):
                returned = asyncio.run(returned)
            return hits_of(returned)
        except InputError as error:
            msg = f"{self.name}: {error}"
            raise InputError(msg) from None
        except (Exception, SystemExit) as error:
            msg = f"{self.name} raised {told(error)} for the question {question!r}"
            raise InputError(msg) from error


def target_of(retriever: object, name: str = "") -> Target:
    """Return *retriever* as something that can be asked.

    It is a function of a question and perhaps of how many, or an object with the
    method of LangChain, LlamaIndex or Haystack.
    """
    if inspect.isclass(retriever):
        msg = (
            f"{name or retriever.__name__} is a class; expected an instance or function"
        )
        raise InputError(msg)
    function = retriever
    if not inspect.isroutine(retriever):
        methods = (getattr(retriever, method, None) for method in METHODS)
        function = next(filter(callable, methods), retriever)
    if not callable(function):
        msg = (
            f"{name or retriever!r} cannot be called; expected a function or retriever"
        )
        raise InputError(msg)
    called = name or getattr(function, "__qualname__", type(retriever).__name__)
    k_name, takes_k = _k_of(function)

    def call(question: str, k: int) -> Any:  # noqa: ANN401 -- whatever it returns
        if not takes_k:
            return function(question)
        return function(question, **{k_name: k}) if k_name else function(question, k)

    return Target(called, call, takes_k)


def _k_of(function: Callable[..., Any]) -> tuple[str, bool]:
    """Return how the number wanted is named, or that it comes second, or neither."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return "", True
    by_name = {
        p.name
        for p in parameters
        if p.kind in {p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY}
    }
    named = next((name for name in KS if name in by_name), "")
    placed = [
        p
        for p in parameters
        if p.kind in {p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD}
        and p.default is p.empty
    ]
    return named, bool(named) or len(placed) > 1


def loaded(reference: str) -> Target:
    """Return the retriever that ``module:name`` names, from here or from the path."""
    module_name, colon, name = reference.partition(":")
    if not colon or not module_name or not name:
        msg = f"{reference!r} names no retriever; expected module:function"
        raise InputError(msg)
    if module_name.endswith(".py") or "/" in module_name:
        path = Path(module_name)
        sys.path.insert(0, str(path.parent.resolve()))
        module_name = path.stem
    sys.path.insert(0, str(Path.cwd()))
    module = _imported(module_name)
    found: object = module
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is None:
        raise InputError(_nothing_called(name, module))
    return target_of(found, reference)


def _imported(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not name.startswith(error.name):
            msg = f"importing {name!r} failed: {told(error)}"
        else:
            msg = (
                f"there is no module {name!r} here; looked in {Path.cwd()} and where "
                "Python looks. Run it from the folder of your module"
            )
        raise InputError(msg) from None
    except (Exception, SystemExit) as error:  # noqa: BLE001 -- theirs, whatever it is
        msg = f"importing {name!r} failed: {told(error)}"
        raise InputError(msg) from None


def _nothing_called(name: str, module: ModuleType) -> str:
    there = sorted(
        known
        for known, value in vars(module).items()
        if callable(value)
        and not known.startswith("_")
        and getattr(value, "__module__", "") == module.__name__
    )
    listed = ", ".join(there[:SHOWN]) or "nothing that can be called"
    return f"{module.__name__!r} has no {name!r}; there is: {listed}"


def told(error: BaseException) -> str:
    """Return somebody else's exception with its file and line, in one sentence."""
    if isinstance(error, SyntaxError):
        return f"SyntaxError: {error.msg} ({error.filename}, line {error.lineno})"
    frames = traceback.extract_tb(error.__traceback__)
    ours = str(Path(__file__).parent)
    theirs = [
        frame
        for frame in frames
        if not frame.filename.startswith((ours, "<frozen"))
        and Path(frame.filename).parent.name != "importlib"
    ]
    outside = [frame for frame in theirs if "site-packages" not in frame.filename]
    kind, text = type(error).__name__, " ".join(str(error).split())
    said = f"{kind}: {text}" if text else kind
    if not theirs:
        return said
    frame = (outside or theirs)[-1]
    return f"{said} ({frame.filename}, line {frame.lineno})"
