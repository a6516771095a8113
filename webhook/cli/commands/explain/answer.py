"""The answer to a question about a pod: the explanation, and what its fixes do to the other pods of the workload."""

from msgspec import Struct

from webhook.core.changes.candidates import PodFix
from webhook.core.explain.cause_text import not_evaluated_lines
from webhook.core.explain.edit_target import command, patch
from webhook.core.explain.explanation import Explanation
from webhook.core.text import one_line
from webhook.core.what_if.questions import Question
from webhook.core.what_if.replicas import Replicas


class AnsweredQuestion(Struct, frozen=True):
    """A question and what there is to say.

    Shape: ``missing`` has a line for what of the cluster could not be read; ``options`` name a live cluster for
    kubectl, as the command line did. ``replicas`` says what each fix does to all pods of the workload, None where that
    is not known; none of it was asked for if it is empty.
    """

    question: Question
    explanation: Explanation
    missing: tuple[str, ...] = ()
    options: str = ""
    replicas: tuple[Replicas | None, ...] = ()

    @property
    def not_evaluated(self) -> list[str]:
        """A line for each thing that could change the answer and is not evaluated."""
        to_come = () if self.question.exists else (*self.question.unknown, "AdmissionPlugins")
        lines = not_evaluated_lines(self.explanation.not_evaluated, to_come)
        return [*lines, *(one_line(line) for line in self.missing)]

    def patch(self, fix: PodFix) -> list[dict[str, object]] | None:
        """The fix as a JSON patch of the object to edit; None where there is none."""
        target = self.question.target
        return None if target is None else patch(fix, target, self.question.pod)

    def command(self, fix: PodFix) -> str | None:
        """The same as a command to copy."""
        target, operations = self.question.target, self.patch(fix)
        return None if target is None or operations is None else command(operations, target, self.options)
