"""What a page says: its text without markup, part by part."""

from html.parser import HTMLParser

_VOID = {"meta", "link", "input", "rect", "line"}
_SILENT = {"script", "style", "head", "svg", "option"}


class Reader(HTMLParser):
    """Collects texts by the ids and classes of what they stand in."""

    def __init__(self):
        super().__init__()
        self.open, self.rows, self.texts, self.links = [], [], {}, []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if tag in _VOID:
            return
        self.open.append((tag, {given.get("id"), *(given.get("class") or "").split()} - {None}))
        if tag == "tr":
            self.rows.append("")
        if tag == "a":
            self.links.append(given.get("href"))

    def handle_endtag(self, tag):
        while tag not in _VOID and self.open and self.open.pop()[0] != tag:
            pass

    def handle_data(self, text):
        tags = {tag for tag, _ in self.open}
        if tags & _SILENT:
            return
        words = " ".join(text.split())
        for name in {name for _, names in self.open for name in names}:
            self.texts[name] = f"{self.texts.get(name, '')} {words}".strip()
        if "tr" in tags and words:
            self.rows[-1] = f"{self.rows[-1]} {words}".strip()


def read(response):
    assert response.status_code == 200, response.text
    reader = Reader()
    reader.feed(response.text)
    return reader
