"""Sections: which lines are headings, and what they say their text is about."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise


def _table(names: str) -> Mapping[str, tuple[str, ...]]:
    """Return the mapping that a text of "tag: word, word" lines stands for."""
    entries = (entry.split(":") for entry in names.replace("\n ", "").splitlines()[1:])
    return {tag: tuple(map(str.strip, words.split(","))) for tag, words in entries}


_NAMES = """
summary: summary, abstract, overview, at a glance, key facts, tl dr,
  zusammenfassung, überblick, übersicht, kurzfassung, résumé, resumen, 概要, 要約, 摘要
introduction: introduction, intro, preface, foreword, about, einleitung, einführung,
  vorwort, introducción, introduzione, はじめに, 引言, 简介
background: background, context, history, motivation, rationale, hintergrund,
  kontext, ausgangslage, geschichte, contexte, antecedentes, 背景
eligibility: eligibility, eligible, who can apply, who may apply, requirements,
  criteria, conditions, teilnahmevoraussetzungen, voraussetzungen,
  teilnahmeberechtigung, antragsberechtigung, antragsberechtigt, kriterien,
  bedingungen, éligibilité, requisitos, 資格, 応募資格, 条件
objectives: objectives, objective, aims, aim, goals, goal, purpose, scope, ziele,
  ziel, zielsetzung, zweck, objectifs, objetivos, 目的, 目標, 目标
budget: budget, budgets, funding, costs, cost, price, prices, pricing, fees, fee,
  finances, financing, kosten, preise, preis, gebühren, förderung, finanzierung,
  fördersumme, coûts, presupuesto, costes, 予算, 費用, 料金, 预算, 价格
methods: methods, method, methodology, materials and methods, approach, procedure,
  methoden, methode, methodik, vorgehen, verfahren, méthodes, métodos, 方法
results: results, result, findings, outcomes, outcome, ergebnisse, ergebnis,
  befunde, résultats, resultados, 結果, 结果
discussion: discussion, diskussion, discusión, 考察, 讨论
conclusion: conclusion, conclusions, outlook, fazit, schluss, schlussfolgerung,
  schlussfolgerungen, ausblick, conclusión, 結論, まとめ, 结论
timeline: timeline, schedule, milestones, work plan, roadmap, zeitplan, zeitleiste,
  ablauf, meilensteine, arbeitsplan, calendrier, cronograma, 日程, スケジュール, 时间表
deadline: deadline, deadlines, due date, closing date, frist, fristen,
  einreichfrist, bewerbungsfrist, stichtag, antragsfrist, einsendeschluss, date
  limite, plazo, 締切, 期限, 截止日期
evaluation: evaluation, assessment, review process, scoring, selection criteria,
  bewertung, begutachtung, auswahlverfahren, auswahlkriterien, évaluation,
  evaluación, 評価, 审查, 评估
application: application, applications, how to apply, submission, bewerbung, antrag,
  antragstellung, einreichung, candidature, solicitud, 申請, 応募方法, 申请
contact: contact, contacts, support, kontakt, ansprechpartner, ansprechpartnerin,
  ansprechpersonen, contacto, お問い合わせ, 連絡先, 联系方式
references: references, bibliography, literature, literatur, literaturverzeichnis,
  quellen, références, referencias, 参考文献
appendix: appendix, annex, anhang, anlage, anlagen, annexe, anexo, 付録, 附录
faq: faq, faqs, frequently asked questions, questions and answers, häufige fragen,
  よくある質問, 常见问题
"""

DEFAULT_SECTION_TAGS: Mapping[str, Sequence[str]] = _table(_NAMES)

MAX_HEADING_CHARS = 160
MAX_TITLE_CHARS = 120
_OPENING_CHARS = 20_000
_MARKDOWN = re.compile(r"(#{1,6})\s+\S")
_UNDERLINE = re.compile(r"(?:={2,}|-{2,})\s*")
_NUMBERED = re.compile(r"(\d{1,3}(?:\.\d{1,3})*|[IVX]{1,5}|[A-Z])[.)]?\s+[^\W\d_]")
_MAX_NUMBERED_CHARS = 80
_MAX_CAPITALS_CHARS = 60
_MIN_CAPITALS = 3
_SENTENCE_ENDS = tuple(".,;:!?。、！？")  # noqa: RUF001 -- full-width marks are meant
_WORD = re.compile(r"\w+")
_JUNK_TITLE = re.compile(
    r"microsoft (?:word|powerpoint|excel)|untitled|\(?anonymous|.*\.\w{2,5}$|\W*$"
    r"|(?:document|dokument|presentation|slide|page|folie|book|mappe|title|no title)"
    r" ?\d*$|powerpoint[- ]pr|this (?:file|document) (?:was|is) |automatically gener"
    r"|(?:new |ohne |sans )(?:document|titel|titre)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Heading:
    """A line that opens a section; *level* 1 is the outermost."""

    level: int
    text: str


def heading_of(line: str, *, alone: bool, following: str) -> Heading | None:
    """Return the heading that *line* is, if it is one.

    *alone* says that the line opens its paragraph; *following* is the next line.
    """
    if len(line) > MAX_HEADING_CHARS or not line:
        return None
    if marked := _MARKDOWN.match(line):
        return Heading(len(marked[1]), line.strip("# "))
    if not alone or following.startswith(("- ", "* ")):
        return None
    if _UNDERLINE.fullmatch(following) and not _UNDERLINE.fullmatch(line):
        return Heading(1 if following.startswith("=") else 2, line)
    if line.endswith(_SENTENCE_ENDS):
        return None
    return _numbered(line, following) or _capitals(line)


def title_of(text: str) -> str:
    """Return the first marked heading near the start of a text, else its first line."""
    lines = [line.strip() for line in text[:_OPENING_CHARS].splitlines()]
    fenced = False
    for line, following in pairwise([*lines, ""]):
        fenced ^= line.startswith(("```", "~~~"))
        marked = line.startswith("#") or is_underline(following)
        if marked and not fenced:
            heading = heading_of(line, alone=True, following=following)
            if heading and heading.text:
                return heading.text[:MAX_TITLE_CHARS]
    return next(filter(None, lines), "")[:MAX_TITLE_CHARS]


def sensible_title(declared: str) -> str:
    """Return a title that a file declares, or nothing if a program wrote it there."""
    title = " ".join(declared.split())
    return "" if _JUNK_TITLE.match(title) else title


def is_underline(line: str) -> bool:
    """Return whether a line may underline the heading before it."""
    return bool(_UNDERLINE.fullmatch(line))


def tags_of(heading: str, section_tags: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return the tags whose words the heading has, in the order of the mapping."""
    words = _WORD.findall(heading.casefold())
    table = _words_of(tuple((tag, tuple(names)) for tag, names in section_tags.items()))
    spaced = f" {' '.join(words)} "
    tags = {tag for word in words for tag in table.single.get(word, ())}
    tags.update(tag for name, tag in table.others if name in spaced)
    return tuple(tag for tag in section_tags if tag in tags)


@dataclass(slots=True)
class Sections:
    """The open sections at one point of a text, outermost first."""

    section_tags: Mapping[str, Sequence[str]]
    _open: list[tuple[int, tuple[str, ...]]] = field(default_factory=list)

    def enter(self, heading: Heading) -> tuple[str, ...]:
        """Open a section; return its tags, or those of the one around it."""
        self._open = [(lvl, tags) for lvl, tags in self._open if lvl < heading.level]
        around = self._open[-1][1] if self._open else ()
        tags = tags_of(heading.text, self.section_tags) or around
        self._open.append((heading.level, tags))
        return tags


@dataclass(frozen=True, slots=True)
class _Words:
    """The tags of words that stand alone, and of what is looked for between spaces.

    In a language without spaces a name may stand anywhere.
    """

    single: Mapping[str, Sequence[str]]
    others: Sequence[tuple[str, str]]


@lru_cache(maxsize=16)
def _words_of(section_tags: tuple[tuple[str, tuple[str, ...]], ...]) -> _Words:
    single: dict[str, list[str]] = {}
    others: list[tuple[str, str]] = []
    for tag, names in section_tags:
        for name in map(str.casefold, names):
            if _WORD.fullmatch(name) and name.isascii():
                single.setdefault(name, []).append(tag)
            else:
                spaced = name.isascii() or " " in name
                others.append((f" {name} " if spaced else name, tag))
    return _Words(single, others)


def _numbered(line: str, following: str) -> Heading | None:
    number = _NUMBERED.match(line)
    if not number or len(line) > _MAX_NUMBERED_CHARS or _NUMBERED.match(following):
        return None
    title = line[number.end() - 1 :]
    if not title[0].isupper() or (len(number[1]) == 1 and number[1] in "AI"):
        return None
    return Heading(number[1].count(".") + 1, title)


def _capitals(line: str) -> Heading | None:
    letters = sum(map(str.isalpha, line))
    short = letters >= _MIN_CAPITALS and len(line) <= _MAX_CAPITALS_CHARS
    wordy = letters * 2 >= len(line)
    return Heading(1, line) if short and wordy and line.isupper() else None
