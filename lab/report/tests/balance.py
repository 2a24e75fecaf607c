"""Reads an HTML file with Python's parser and says what is wrong with it: tags that do not match, ids that come twice,
anything from elsewhere, plots without text, scripts beyond our own."""
import html.parser
import sys

VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}


class Check(html.parser.HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.ids, self.wrong, self.counts = [], set(), [], {}
        self.inside = {}

    def start(self, tag, attrs):
        self.counts[tag] = self.counts.get(tag, 0) + 1
        for name, value in attrs:
            if name == "id":
                if value in self.ids:
                    self.wrong.append(f"id {value} comes twice")
                self.ids.add(value)
            if name in ("href", "src") and not (value or "").startswith(("#", "data:")):
                self.wrong.append(f"{tag} leads elsewhere: {value}")
            if name.startswith("on"):
                self.wrong.append(f"{tag} has a handler {name}")
            if name != "style" and value and ("url(" in value):
                self.wrong.append(f"{tag} loads {value}")

    def handle_starttag(self, tag, attrs):
        self.start(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)
            if tag == "svg":
                self.inside = {"hidden": any(n == "aria-hidden" for n, _ in attrs)}
            elif self.open.count("svg"):
                self.inside[tag] = True

    def handle_startendtag(self, tag, attrs):
        self.start(tag, attrs)

    def handle_endtag(self, tag):
        if not self.open or self.open[-1] != tag:
            self.wrong.append(f"</{tag}> at {self.getpos()} closes {self.open[-3:]}")
            return
        self.open.pop()
        if tag == "svg" and not self.inside["hidden"] and not ("title" in self.inside and "desc" in self.inside):
            self.wrong.append(f"a plot at {self.getpos()} has no title or description")


check = Check()
check.feed(open(sys.argv[1], encoding="utf-8").read())
check.close()
if check.open:
    check.wrong.append(f"never closed: {check.open}")
if check.counts.get("script") != 1:
    check.wrong.append(f"{check.counts.get('script')} scripts")
for wrong in check.wrong:
    print(wrong)
print(check.counts.get("svg", 0), "svg")
sys.exit(1 if check.wrong else 0)
