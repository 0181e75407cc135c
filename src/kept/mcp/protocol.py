"""The protocol: tools and documents as a client of MCP sees them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import quote, unquote

import mcp_types as types
from mcp.server import Server, ServerRequestContext
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel, ValidationError

from kept import __version__
from kept.errors import KeptError, NotFoundError
from kept.http.problems import Problem
from kept.http.replying import cursor_of, place_of
from kept.logs import Logger
from kept.mcp.desks import Desk, Seat
from kept.mcp.tools import FAILED, TOOLS, Done, ToolKind
from kept.receipts import StoredDocument

RESOURCE_NOT_FOUND = -32002
SHOWN_FAULTS = 5
PAGE = 100
DOCUMENTS = "kept://documents/"
PLAIN = "text/plain"
INSTRUCTIONS = (
    "A knowledge base that cites only what deserves it. Use 'search' for passages and "
    "'ask' for an answer with citations; both say so when nothing is relevant, and "
    "then there is nothing to cite. 'fetch' reads a whole document, 'why_not' tells "
    "why something that should be there is missing."
)

T = TypeVar("T")
Context = ServerRequestContext[Any, Any]
Tell = Callable[[KeptError], str]
logger = Logger(__name__)


def build(seat: Seat, *, allow_ingest: bool, tell: Tell = str) -> Server[Any]:
    """Return a server whose clients are served at the desk that *seat* gives them.

    They hear of an error what *tell* tells; what it keeps back is logged.
    """
    kinds = [kind for kind in TOOLS if allow_ingest or not kind.writes]
    counter = _Counter(seat, {kind.name: kind for kind in kinds}, tell)
    return Server(
        "kept",
        version=__version__,
        title="Kept",
        instructions=INSTRUCTIONS,
        on_list_tools=counter.list_tools,
        on_call_tool=counter.call_tool,
        on_list_resources=counter.list_resources,
        on_list_resource_templates=counter.list_resource_templates,
        on_read_resource=counter.read_resource,
    )


@dataclass(frozen=True)
class _Counter:
    """Answers the requests of clients."""

    seat: Seat
    kinds: dict[str, ToolKind]
    tell: Tell

    async def list_tools(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        """Name the tools."""
        return types.ListToolsResult(tools=[_shown(k) for k in self.kinds.values()])

    async def call_tool(
        self, context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        """Have a tool work; what goes wrong is told to the model, in words."""
        kind = self.kinds.get(params.name)
        if kind is None:
            msg = (
                f"there is no tool {params.name!r}; known are: {', '.join(self.kinds)}"
            )
            raise MCPError(types.INVALID_PARAMS, msg)
        try:
            arguments = kind.arguments.model_validate(params.arguments or {})
        except ValidationError as error:
            return _failed(_faults(kind, error))
        try:
            desk: Desk = self.seat(context.request)
            done = await desk.run(lambda: _worked(desk, kind, arguments))
        except Exception as error:  # noqa: BLE001 -- the last to hear of it
            return _failed(self._told(error, kind.name))
        return types.CallToolResult(
            content=[types.TextContent(text=done.gist)],
            structured_content=dict(done.value),
        )

    async def list_resources(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """Name the documents, oldest first, a page at a time."""
        cursor = params.cursor if params else None

        def listed(desk: Desk) -> types.ListResourcesResult:
            place = place_of(cursor, int, str)
            after = None if place is None else desk.masked(place)
            rows = desk.pages.documents(after, PAGE + 1)
            more = len(rows) > PAGE
            return types.ListResourcesResult(
                resources=[_resource(stored) for _, stored in rows[:PAGE]],
                next_cursor=cursor_of(desk.masked(rows[PAGE - 1][0])) if more else None,
            )

        return await self._at_desk(context, listed)

    async def list_resource_templates(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        """Say how the address of a document is made."""
        template = types.ResourceTemplate(
            name="document",
            title="Document",
            uri_template=f"{DOCUMENTS}{{document_id}}",
            description="The text of a document, by the document_id of a search.",
            mime_type=PLAIN,
        )
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        """Return the text of a document."""
        uri = params.uri
        if not uri.startswith(DOCUMENTS):
            msg = f"there is no resource {uri!r}; expected {DOCUMENTS}DOCUMENT_ID"
            raise MCPError(RESOURCE_NOT_FOUND, msg)

        def read(desk: Desk) -> types.ReadResourceResult:
            base = desk.base()
            name = unquote(uri.removeprefix(DOCUMENTS))
            _, text = base.store.document(base.tenant, name)
            found = types.TextResourceContents(uri=uri, mime_type=PLAIN, text=text)
            return types.ReadResourceResult(contents=[found])

        return await self._at_desk(context, read)

    async def _at_desk(self, context: Context, work: Callable[[Desk], T]) -> T:
        """Do *work* for a client; errors become the protocol's."""
        try:
            desk = self.seat(context.request)
            return await desk.run(lambda: work(desk))
        except NotFoundError as error:
            raise MCPError(RESOURCE_NOT_FOUND, str(error)) from error
        except Exception as error:
            told = self._told(error, context.method)
            ours = not isinstance(error, KeptError | Problem)
            code = types.INTERNAL_ERROR if ours else types.INVALID_PARAMS
            raise MCPError(code, told) from error

    def _told(self, error: Exception, doing: str) -> str:
        """Return what a client may hear of an error; a bug is told to the log."""
        if isinstance(error, Problem):
            return str(error.detail)
        if isinstance(error, KeptError):
            told = self.tell(error)
            if told != str(error):
                logger.error("mcp_failed", doing=doing, why=str(error))
            return told
        logger.error("mcp_failed", doing=doing, exc_info=error)
        return (
            f"unexpected {type(error).__name__}; this is a bug in Kept, told in full "
            "in its log"
        )


def _worked(desk: Desk, kind: ToolKind, arguments: BaseModel) -> Done:
    """Do a tool's work, and leave a line of it also when it fails."""
    try:
        done = kind.work(desk, arguments)
    except Exception:
        desk.note(kind.name, FAILED, getattr(arguments, "question", None))
        raise
    desk.note(kind.name, done.outcome, done.question, **done.known)
    return done


def _shown(kind: ToolKind) -> types.Tool:
    return types.Tool(
        name=kind.name,
        title=kind.title,
        description=kind.description,
        input_schema=kind.arguments.model_json_schema(),
        output_schema=kind.result.model_json_schema(mode="serialization"),
        annotations=types.ToolAnnotations(
            title=kind.title,
            read_only_hint=not kind.writes,
            destructive_hint=False,
            idempotent_hint=True,
            open_world_hint=kind.open_world,
        ),
    )


def _resource(stored: StoredDocument) -> types.Resource:
    document = stored.document
    return types.Resource(
        name=document.id,
        title=document.title or document.source_uri,
        uri=f"{DOCUMENTS}{quote(document.id, safe='')}",
        description=f"{document.type}, {document.chunk_count} chunks, from "
        f"{document.source_uri or 'a text'}",
        mime_type=PLAIN,
    )


def _failed(message: str) -> types.CallToolResult:
    return types.CallToolResult(
        content=[types.TextContent(text=message)], is_error=True
    )


def _faults(kind: ToolKind, error: ValidationError) -> str:
    """Name every argument that is wrong, without repeating what was in it."""
    faults: Sequence[Any] = error.errors(include_url=False, include_input=False)
    told = [
        f"{'.'.join(map(str, fault['loc'])) or 'arguments'}: {fault['msg']}"
        for fault in faults[:SHOWN_FAULTS]
    ]
    known = ", ".join(kind.arguments.model_fields)
    return f"{'; '.join(told)}. The arguments of {kind.name!r} are: {known}"
