"""Re-analysis: a store whose words were made otherwise is found and mended."""

from kept.knowledge_base.base import KnowledgeBase
from kept.stores.sqlite.doctor import examine
from kept.text.terms import packed


def test_words_of_an_older_analysis_are_analysed_again(base: KnowledgeBase) -> None:
    """The doctor names the analysis, analyses again and recounts."""
    base.add("The pumps were calibrated in Leeds by two engineers.")
    before = base.search("calibrated pump engineers").selection
    with base.store.database.writing() as connection:
        connection.execute("UPDATE meta SET value = 'old' WHERE key = 'analysis'")
        connection.execute("UPDATE chunks SET terms = ?, length = 1", (packed(["x"]),))

    findings = examine(base.store, repair=True)

    assert [(f.what, f.repaired) for f in findings][:1] == [("words", True)]
    assert examine(base.store, repair=True) == []
    assert base.search("calibrated pump engineers").selection == before
