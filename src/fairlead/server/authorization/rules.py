"""Policy rules: which requests one allows, and which rules cover which."""

from collections.abc import Iterable, Iterator

from fairlead.server.authorization.attributes import Attributes
from fairlead.server.authorization.authorizer import Rule
from fairlead.server.errors.field_errors import quote_go


def allows(rule: Rule, asked: Attributes) -> bool:
    """Whether a rule alone allows what is asked."""
    if not _has(rule, "verbs", asked.verb):
        return False
    if asked.path:
        return any(url == "*" or _under(url, asked.path) for url in rule.get("nonResourceURLs") or ())
    if not _has(rule, "apiGroups", asked.group):
        return False
    resources = rule.get("resources") or ()
    if not (
        "*" in resources
        or asked.full_resource in resources
        or (asked.subresource and f"*/{asked.subresource}" in resources)
    ):
        return False
    names = rule.get("resourceNames")
    return not names or asked.name in names


def missing(owned: list[Rule], wanted: Iterable[Rule]) -> list[Rule]:
    """What of the wanted rules the owned ones do not cover, in pieces of one verb on one thing."""
    pieces = [piece for rule in wanted for piece in _pieces(rule)]
    return [piece for piece in pieces if not any(_covers(rule, piece) for rule in owned)]


def told(rules: Iterable[Rule]) -> str:
    """Rules as the refusal of an escalation lists them: a line for each thing, with all of its verbs."""
    together: dict[tuple[tuple[str, tuple[str, ...]], ...], Rule] = {}
    for index, rule in enumerate(rules):
        simple = not rule.get("nonResourceURLs")
        key = tuple((word, tuple(rule.get(word) or ())) for word in ("apiGroups", "resources", "resourceNames"))
        known = together.setdefault(key if simple else (*key, (str(index), ())), {**rule, "verbs": []})
        known["verbs"] += rule["verbs"]
    return "\n".join(sorted({_compact(rule) for rule in together.values()}))


def _pieces(rule: Rule) -> Iterator[Rule]:
    for group in rule.get("apiGroups") or ():
        for resource in rule.get("resources") or ():
            for verb in rule.get("verbs") or ():
                one = {"apiGroups": [group], "resources": [resource], "verbs": [verb]}
                names = rule.get("resourceNames")
                yield from ({**one, "resourceNames": [name]} for name in names) if names else (one,)
    for url in rule.get("nonResourceURLs") or ():
        yield from ({"nonResourceURLs": [url], "verbs": [verb]} for verb in rule.get("verbs") or ())


def _covers(rule: Rule, piece: Rule) -> bool:
    if not _has(rule, "verbs", piece["verbs"][0]):
        return False
    if "nonResourceURLs" in piece:
        return any(_under(url, piece["nonResourceURLs"][0]) for url in rule.get("nonResourceURLs") or ())
    if not _has(rule, "apiGroups", piece["apiGroups"][0]):
        return False
    wanted, resources = piece["resources"][0], rule.get("resources") or ()
    _, slash, subresource = wanted.partition("/")
    if not ("*" in resources or wanted in resources or (slash and f"*/{subresource}" in resources)):
        return False
    names = rule.get("resourceNames")
    return not names or ("resourceNames" in piece and piece["resourceNames"][0] in names)


def _has(rule: Rule, key: str, value: str) -> bool:
    given = rule.get(key) or ()
    return "*" in given or value in given


def _under(pattern: str, path: str) -> bool:
    return pattern == path or (pattern.endswith("*") and path.startswith(pattern.rstrip("*")))


_WORDS = (
    ("APIGroups", "apiGroups"),
    ("Resources", "resources"),
    ("NonResourceURLs", "nonResourceURLs"),
    ("ResourceNames", "resourceNames"),
    ("Verbs", "verbs"),
)


def _compact(rule: Rule) -> str:
    parts = [f"{word}:[{' '.join(quote_go(v) for v in rule[key])}]" for word, key in _WORDS if rule.get(key)]
    return "{" + ", ".join(parts) + "}"
