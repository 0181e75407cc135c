"""Main content: which parts of a page are its text, and which are its furniture.

Extractors that look for the text of a news article lost between 2 and 40 % of pages of
documentation, definition lists and tables first (``docs/results/reading.md``). Here an
element is left out only for a reason: its tag, its role, its name, or that it is a list
of links. What is left is the content.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from kept.text.readers.dom import Element

LEAST_SHARE = 0.25
LEAST_TEXT = 250
MOST_OF_PAGE = 0.5
CONTENT_SHARE = 0.8
LINKED = 0.7
NAMED_LINKED = 0.3
MANY_LINKS = 3
SHORT_LINK = 60
SHORT_BLOCK = 200
# More elements than this that call themselves content are not looked into.
MOST_ROOTS = 50

_ROLES = frozenset(
    (
        "alertdialog", "banner", "complementary", "contentinfo", "dialog", "menu",
        "menubar", "navigation", "search", "toolbar",
    )
)  # fmt: skip
# What a name of furniture may go on with: "social-links", but not "social-security".
_REST = (
    r"(?:[_-](?:area|banner|bar|block|body|bottom|box|buttons?|container|content|desktop|form"
    r"|group|header|footer|icons?|inner|items?|left|links?|list|main|menu|mobile|nav"
    r"|notice|outer|panel|popup|right|section|top|widgets?|wrap|wrapper|\d+))*"
)
# A word of a class or id that stands for nothing but furniture.
_FURNITURE = re.compile(
    r"""(?:[a-z0-9]+[_-]){0,2}(?:
    bread-?crumbs? | crumbs? | sphinxsidebar | nav | nav-?bar | nav-?header
    | nav-?footer | nav-?links? | nav-?menu | doc-?nav | navi | navigation | main-?menu
    | search-?menu | menu-?bar | site-?header | site-?footer | mast-?head
    | page-?footer | global-?header | global-?footer | top-?bar | colophon
    | skip-?(?:link|nav|to)\w* | cookies? | consent | gdpr | share | sharing | social
    | sharedaddy | addtoany | jp-relatedposts | newsletter | promo | advert\w* | ads?
    | ad-(?:slot|unit|banner) | sponsor(?:s|ed)? | respond | pagination | pager
    | comment-?(?:reply|respond) | prev-?next | tag-?cloud | rst-versions
    | header-?link | anchorjs-link | permalink | mw-editsection | jump-?links?
    | edit-?(?:link|page|section|this)\w* | no-?print | line-?nos? | copy-?btn
    | lang(?:uage)?-?(?:switch\w*|bar|selector|links|menu|list)
    )"""
    + _REST,
    re.VERBOSE | re.IGNORECASE,
)
# Names that content has, too: they count where there are links or little text.
_DOUBTFUL = re.compile(
    r"""(?:[a-z0-9]+[_-])?(?:
    menu | side-?bar\w* | footer | header | page-?header | toc | table-?of-?contents
    | contents | related\w* | recommend\w* | see-?also | subscri\w+ | sign-?up
    | log-?in | banner | widget\w* | tags? | tag-?list | overlay | modal | popup
    | drop-?down | rating | meta | author | byline | tool-?bar | (?:top|bottom)?-?langs?
    | languages | reply | top | bottom | quickview | path | utility | links | teaser\w*
    | more | categor(?:y|ies) | trending | popular | most-?read | outbrain\w*
    | taboola\w* | caption
    )"""
    + _REST,
    re.VERBOSE | re.IGNORECASE,
)
_NOTE = re.compile(
    r"note|tip|hint|warning|important|caution|danger|callout|admonition", re.IGNORECASE
)
_CONTENT = re.compile(
    r"(?:[a-z0-9]+[_-]){0,2}(?:main|content|article|document|entry|post|story|body|text)"
    r"(?:[_-](?:body|content|text|main|inner|area|wrapper|container))?",
    re.IGNORECASE,
)
_ANCHORS = frozenset(("¶", "#", "§", "🔗", "⚓", "[edit]", "[source]", "Permalink"))
_NEVER = frozenset(
    (
        "article", "b", "body", "caption", "code", "dd", "dt", "em", "figcaption",
        "h1", "h2", "h3", "h4", "h5", "h6", "i", "main", "pre", "strong", "tbody", "th",
        "thead", "tr",
    )
)  # fmt: skip
_HEADINGS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6"))
_PARTS = frozenset(("nav", "header", "footer", "aside"))
_GROUPS = frozenset(
    ("ul", "ol", "menu", "dir", "div", "section", "dl", "td", "p", "span", "form")
)


@dataclass(frozen=True, slots=True)
class MainContent:
    """The element that holds a page's content, and what is left out below it.

    *share* is how much of the text outside of links that is. *whole* says that it was
    too little, so that nothing is left out.
    """

    root: Element
    left_out: frozenset[Element] = frozenset()
    share: float = 1.0
    whole: bool = False


def main_content(body: Element) -> MainContent:
    """Return what of a page is its content."""
    furniture = frozenset(_furniture(body))
    root = _root(body, furniture)
    left_out = furniture | frozenset(_link_lists(root, furniture))
    kept, all_of_it = _own(root, left_out), body.own
    share = kept / all_of_it if all_of_it else 1.0
    if share < LEAST_SHARE:
        return MainContent(body, share=share, whole=True)
    return MainContent(root, left_out, share)


def _furniture(body: Element) -> Iterator[Element]:
    """Yield the topmost elements that only lead around the page."""
    most = MOST_OF_PAGE * body.own
    around_main = _around_main(body)
    waiting = [(body, False)]
    while waiting:
        element, inside = waiting.pop()
        inside = inside or _is_main(element) or element.tag == "article"
        for child in element.children:
            if not isinstance(child, Element):
                continue
            around = child.own <= most and _leads_around(child, inside=inside)
            if around and child not in around_main:
                yield child
            else:
                waiting.append((child, inside))


def _around_main(body: Element) -> set[Element]:
    """Return the elements that an element for the main content is in."""
    found: set[Element] = set()
    waiting = [(body, False)]
    path: list[Element] = []
    while waiting:
        element, left = waiting.pop()
        if left:
            path.pop()
            continue
        if _is_main(element):
            found.update(path)
            continue
        path.append(element)
        waiting.append((element, True))
        waiting += [(c, False) for c in element.children if isinstance(c, Element)]
    return found


def _leads_around(element: Element, *, inside: bool) -> bool:
    """Return whether an element's tag, role or name say that it is no content."""
    if element.tag in _NEVER:
        return False
    if element.tag in _PARTS:
        return _is_part_of_page(element, inside=inside)
    if element.named("role").lower() in _ROLES:
        return not any(map(_NOTE.search, _classes(element)))
    if element.tag == "a" and element.text() in _ANCHORS:
        return True
    if _says(_classes(element), _FURNITURE):
        return True
    # A section about cookies has that id, too.
    named = _says(element.named("id").split(), _FURNITURE)
    return named and (_has_links(element) or not _has_heading(element))


def _is_part_of_page(element: Element, *, inside: bool) -> bool:
    """Return whether a header, footer or aside is the page's, not an article's."""
    small = element.chars <= SHORT_BLOCK
    match element.tag:
        case "nav":
            return True
        case "header":
            return not inside or (_has_links(element) and element.links >= MANY_LINKS)
        case "footer":
            return not inside or small or _has_links(element)
        case _:
            noted = any(map(_NOTE.search, _classes(element)))
            return not noted and (not inside or small or _has_links(element))


def _is_link_list(element: Element) -> bool:
    """Return whether there is next to nothing in an element but short links.

    Less will do where its name says so.
    """
    if element.tag not in _GROUPS or not element.links:
        return False
    names = [*_classes(element), *element.named("id").split()]
    if _says(names, _DOUBTFUL) and not _has_text(element):
        return True
    return (
        element.links >= MANY_LINKS
        and element.linked >= LINKED * element.chars
        and element.linked <= SHORT_LINK * element.links
    )


def _has_text(element: Element) -> bool:
    """Return whether an element is more than a few words and links."""
    return element.chars > SHORT_BLOCK and not _has_links(element)


def _has_links(element: Element) -> bool:
    return element.linked >= NAMED_LINKED * element.chars


def _has_heading(element: Element) -> bool:
    return any(one.tag in _HEADINGS for one in element.elements())


def _classes(element: Element) -> list[str]:
    return element.named("class").split()


def _says(names: list[str], what: re.Pattern[str]) -> bool:
    return any(_is_named(what, name) for name in names)


@lru_cache(maxsize=4096)
def _is_named(what: re.Pattern[str], name: str) -> bool:
    return what.fullmatch(name) is not None


def _is_main(element: Element) -> bool:
    return element.tag == "main" or element.named("role").lower() == "main"


def _root(body: Element, furniture: frozenset[Element]) -> Element:
    """Return the smallest element that says it holds the content, else the body."""
    found, most = body, _own(body, furniture)
    if most < LEAST_TEXT:
        return body
    for share, wanted in ((LEAST_SHARE, _is_main), (CONTENT_SHARE, _is_content)):
        roots = [one for one in _below(body, furniture) if wanted(one)]
        for element in roots[:MOST_ROOTS]:
            if _own(element, furniture) >= share * most and _holds(found, element):
                found = element
        most = _own(found, furniture)
    return found


def _is_content(element: Element) -> bool:
    if element.tag == "article":
        return True
    names = [*_classes(element), *element.named("id").split()]
    return element.tag in _GROUPS and _says(names, _CONTENT)


def _holds(outer: Element, inner: Element) -> bool:
    return any(element is inner for element in outer.elements())


def _link_lists(root: Element, furniture: frozenset[Element]) -> Iterator[Element]:
    """Yield lists of links in the content, unless the page is made of them."""
    lists = list(_topmost(root, lambda one: one in furniture or _is_link_list(one)))
    fresh = [one for one in lists if one not in furniture]
    if _own(root, frozenset(lists)) >= LEAST_TEXT:
        yield from fresh


def _own(root: Element, left_out: frozenset[Element] = frozenset()) -> int:
    """Return how much text below *root* is in no link, less what is *left_out*."""
    gone = _topmost(root, left_out.__contains__) if left_out else ()
    return root.own - sum(element.own for element in gone)


def _below(root: Element, left_out: frozenset[Element]) -> Iterator[Element]:
    """Yield the elements below *root* that are not *left_out*."""
    waiting = [root]
    while waiting:
        element = waiting.pop()
        if element is not root:
            yield element
        waiting += [
            child
            for child in reversed(element.children)
            if isinstance(child, Element) and child not in left_out
        ]


def _topmost(root: Element, wanted: Callable[[Element], bool]) -> Iterator[Element]:
    """Yield the wanted elements below *root* that are in no other wanted one."""
    waiting = [root]
    while waiting:
        element = waiting.pop()
        if element is not root and wanted(element):
            yield element
        else:
            waiting += [c for c in element.children if isinstance(c, Element)]
