"""The protocol: tools and documents as clients of MCP see them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import unquote

import mcp_types as types
from mcp.server import Server, ServerRequestContext
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel, TypeAdapter, ValidationError

from kept import __version__
from kept._runtime import Logger
from kept.doors.http.problems import Problem
from kept.doors.http.responses import cursor_of, place_of
from kept.doors.mcp.clients import Client, pages_of
from kept.doors.mcp.tools import (
    DOCUMENTS,
    FAILED,
    TOOLS,
    Tool,
    ToolResult,
    document_url,
)
from kept.errors import KeptError, NotFoundError
from kept.ingest.receipts import StoredDocument

# Of earlier versions of the protocol; the SDK has no constant for it.
RESOURCE_NOT_FOUND = -32002
SHOWN_FAULTS = 5
PAGE = 100
PLAIN = "text/plain"
INSTRUCTIONS = (
    "A knowledge base that cites only what deserves it. Use 'search' for passages and "
    "'ask' for an answer with citations; both say so when nothing is relevant, and "
    "then there is nothing to cite. 'fetch' reads a whole document, 'why_not' explains "
    "why something that should be there is missing."
)

T = TypeVar("T")
Context = ServerRequestContext[Any, Any]
logger = Logger(__name__)


def build(
    client_of: Callable[[Any], Client],
    *,
    allow_ingest: bool,
    public: Callable[[KeptError], str] = str,
) -> Server[Any]:
    """Return a server; *client_of* a request says what its client may reach.

    *public* returns what a client may read of an error; the rest is logged.
    """
    tools = [tool for tool in TOOLS if allow_ingest or not tool.writes]
    handlers = _Handlers(client_of, {tool.name: tool for tool in tools}, public)
    return Server(
        "kept",
        version=__version__,
        title="Kept",
        instructions=INSTRUCTIONS,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_resource_templates,
        on_read_resource=handlers.read_resource,
    )


@dataclass(frozen=True)
class _Handlers:
    """Answers the requests of clients."""

    client_of: Callable[[Any], Client]
    tools: dict[str, Tool]
    public: Callable[[KeptError], str]

    async def list_tools(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_listed(t) for t in self.tools.values()])

    async def call_tool(
        self, context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        """Call a tool; errors become results, which the model can read."""
        tool = self.tools.get(params.name)
        if tool is None:
            known = ", ".join(self.tools)
            msg = f"there is no tool {params.name!r}; known are: {known}"
            raise MCPError(types.INVALID_PARAMS, msg)
        try:
            arguments = tool.arguments.model_validate(params.arguments or {})
        except ValidationError as error:
            return _failed(_faults(tool, error))
        try:
            client = self.client_of(context.request)
            result = await client.run(lambda: _called(client, tool, arguments))
        except Exception as error:  # noqa: BLE001 -- every error becomes a result
            return _failed(self._message(error, tool.name))
        return types.CallToolResult(
            content=[types.TextContent(text=result.text)],
            structured_content=dict(result.value),
        )

    async def list_resources(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """List the documents, the oldest first, a page at a time."""
        cursor = params.cursor if params else None

        def listed(client: Client) -> types.ListResourcesResult:
            place = place_of(cursor, int, str)
            after = None if place is None else client.masked(place)
            rows = pages_of(client.base()).documents(after, PAGE + 1)
            shown = rows[:PAGE]
            more = len(rows) > PAGE
            return types.ListResourcesResult(
                resources=[_resource(stored) for _, stored in shown],
                next_cursor=cursor_of(client.masked(shown[-1][0])) if more else None,
            )

        return await self._run(context, listed)

    async def list_resource_templates(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
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

        def read(client: Client) -> types.ReadResourceResult:
            base = client.base()
            name = unquote(uri.removeprefix(DOCUMENTS))
            _, text = base.store.document(base.tenant, name)
            content = types.TextResourceContents(uri=uri, mime_type=PLAIN, text=text)
            return types.ReadResourceResult(contents=[content])

        return await self._run(context, read)

    async def _run(self, context: Context, work: Callable[[Client], T]) -> T:
        """Run *work* for a client; errors become the protocol's."""
        try:
            client = self.client_of(context.request)
            return await client.run(lambda: work(client))
        except NotFoundError as error:
            raise MCPError(RESOURCE_NOT_FOUND, str(error)) from error
        except Exception as error:
            message = self._message(error, context.method)
            is_bug = not isinstance(error, KeptError | Problem)
            code = types.INTERNAL_ERROR if is_bug else types.INVALID_PARAMS
            raise MCPError(code, message) from error

    def _message(self, error: Exception, doing: str) -> str:
        """Return what a client may read of an error, and log the rest."""
        if isinstance(error, Problem):
            return str(error.detail)
        if isinstance(error, KeptError):
            message = self.public(error)
            if message != str(error):
                logger.error("mcp_failed", doing=doing, why=str(error))
            return message
        logger.error("mcp_failed", doing=doing, exc_info=error)
        return (
            f"unexpected {type(error).__name__}; this is a bug in Kept, and its log "
            "has the details"
        )


def _called(client: Client, tool: Tool, arguments: BaseModel) -> ToolResult:
    """Run a tool, and write an audit row whether it fails or not."""
    try:
        result = tool.run(client, arguments)
    except Exception:
        client.note(tool.name, FAILED, getattr(arguments, "question", None))
        raise
    client.note(tool.name, result.outcome, result.question, **result.known)
    return result


def _listed(tool: Tool) -> types.Tool:
    output = TypeAdapter(tool.result).json_schema(mode="serialization")
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.arguments.model_json_schema(),
        # The schema of a recursive type is a reference; MCP wants the type beside it.
        output_schema={"type": "object", **output},
        annotations=types.ToolAnnotations(
            title=tool.title,
            read_only_hint=not tool.writes,
            destructive_hint=tool.destroys,
            idempotent_hint=True,
            open_world_hint=tool.writes,
        ),
    )


def _resource(stored: StoredDocument) -> types.Resource:
    document = stored.document
    return types.Resource(
        name=document.id,
        title=document.title or document.source_uri,
        uri=document_url(document.id, ""),
        description=f"{document.type}, {document.chunk_count} chunks, from "
        f"{document.source_uri or 'a text'}",
        mime_type=PLAIN,
    )


def _failed(message: str) -> types.CallToolResult:
    return types.CallToolResult(
        content=[types.TextContent(text=message)], is_error=True
    )


def _faults(tool: Tool, error: ValidationError) -> str:
    """Name every argument that is wrong, without repeating its value."""
    faults = error.errors(include_url=False, include_input=False)[:SHOWN_FAULTS]
    named = [
        f"{'.'.join(map(str, fault['loc'])) or 'arguments'}: "
        + fault["msg"].removeprefix("Value error, ")
        for fault in faults
    ]
    known = ", ".join(tool.arguments.model_fields)
    return f"{'; '.join(named)}. The arguments of {tool.name!r} are: {known}"
