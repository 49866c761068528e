"""What the linter reports."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from fairlead.hazards import Severity


class Level(StrEnum):
    """How a finding is reported. Only warnings fail a run by default."""

    WARN = "warn"
    INFO = "info"


class Confidence(StrEnum):
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


@dataclass(frozen=True, slots=True)
class Rule:
    """One thing that the linter looks for."""

    code: str
    name: str
    title: str
    severity: Severity
    level: Level
    hazard: str  # an id of fairlead.hazards, or "" for rules about the linter itself
    fix: str
    is_default: bool = True
    language: str = "go"
    why: str = ""  # how this code leads to the hazard, if the hazard's own story does not say so

    @property
    def id(self) -> str:
        """Return the full id, which reads as what is wrong: W201-finalizers-unlocked-merge-patch."""
        return f"{self.code}-{self.name}"

    @property
    def page(self) -> str:
        """Return the path of the rule's page in the documentation. The rules of both languages share one page."""
        return f"reference/lint/{self.code}.md"


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the story of a finding."""

    file: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Replacement:
    """The text that fixes a finding, if one expression has to change."""

    file: str
    line: int
    column: int
    old: str
    new: str


@dataclass(slots=True)
class Finding:
    """One place in the source where a write can go wrong."""

    rule: Rule
    file: str
    line: int
    message: str
    steps: list[Step] = field(default_factory=list)
    confidence: Confidence = Confidence.HIGH
    level: Level = Level.WARN
    severity: Severity | None = None
    fix: str = ""
    replacement: Replacement | None = None
    function: str = ""
    subject: str = ""  # the normalized expression, for fingerprints that survive moved lines

    def to_json(self) -> dict[str, object]:
        data: dict[str, object] = {
            "rule": self.rule.id,
            "code": self.rule.code,
            "level": str(self.level),
            "severity": str(self.severity or self.rule.severity),
            "confidence": str(self.confidence),
            "file": self.file,
            "line": self.line,
            "function": self.function,
            "message": self.message,
            "steps": [{"file": s.file, "line": s.line, "text": s.text} for s in self.steps],
            "fix": self.fix or self.rule.fix,
            "hazard": self.rule.hazard,
        }
        if self.replacement is not None:
            data["replacement"] = {
                "file": self.replacement.file,
                "line": self.replacement.line,
                "column": self.replacement.column,
                "old": self.replacement.old,
                "new": self.replacement.new,
            }
        return data
