"""Annotator panels: several people label each case alone, and one settles disagreements."""

from __future__ import annotations

from collections.abc import Sequence

from groundfault.errors import InputError, PlanError
from groundfault.sequential.labelling import LabelSession, check_score
from groundfault.sequential.policies import Query
from groundfault.sequential.record import REVIEWED
from groundfault.sequential.session import SequentialAudit
from groundfault.sequential.two_null_test import Verdict


class AnnotatorPanel:
    """Gives an audit the scores that its labellers agree on.

    Every judgement is recorded at once, with the labeller's name, and never overwritten: a
    labeller whose mind changes before the case is settled judges again, and the last judgement
    counts. A case is settled, and its score goes to the audit, when all labellers agree or the
    adjudicator has decided.

    Parameters
    ----------
    audit : SequentialAudit
    labellers : sequence of str
        Names; one is enough.
    adjudicator : str, optional
        Judges the cases on which labellers disagree, and no other.

    Raises
    ------
    PlanError
        If no labeller is named, one is named twice, or two labellers have no adjudicator.

    Examples
    --------
    >>> from groundfault.sequential import Pool
    >>> audit = SequentialAudit(Pool.from_arrays(range(20)), threshold=0.8)
    >>> panel = AnnotatorPanel(audit, ["ann", "ben"], "cy")
    >>> query = audit.ask()
    >>> panel.judge("ann", query, 1), panel.judge("ben", query, 0), panel.waiting()
    (False, False, ('cy',))
    >>> panel.judge("cy", query, 0), audit.rounds[-1].score
    (True, 0.0)
    """

    def __init__(
        self, audit: SequentialAudit, labellers: Sequence[str], adjudicator: str | None = None
    ) -> None:
        everyone = [*labellers, *([adjudicator] if adjudicator else [])]
        are_named = all(name.strip() for name in everyone)
        if not labellers or not are_named or len(set(everyone)) < len(everyone):
            raise PlanError("give each labeller and the adjudicator a name of their own")
        if len(labellers) > 1 and adjudicator is None:
            raise PlanError("labellers may disagree: name an adjudicator")
        self.audit, self.labellers, self.adjudicator = audit, tuple(labellers), adjudicator

    def waiting(self) -> tuple[str, ...]:
        """Return who has still to judge the open query."""
        query = self.audit.ask()
        if query is None:
            return ()
        scores = self._judgements(query.step)
        missing = tuple(name for name in self.labellers if name not in scores)
        return missing or ((self.adjudicator,) if self.adjudicator else ())

    def judge(self, labeller: str, query: Query, score: float | None) -> bool:
        """Record a judgement; whether it settled the case.

        Parameters
        ----------
        labeller : str
        query : Query
            The one that the audit asked.
        score : float in [0, 1], or None
            None where the case cannot be scored.

        Raises
        ------
        InputError
            If the query is not open, the score is outside [0, 1], or it is not this person's turn.
        """
        self.audit.require_open(query)
        if labeller == self.adjudicator and self.waiting() != (labeller,):
            raise InputError(f"{labeller} adjudicates: {', '.join(self.waiting())} judge first")
        if labeller not in (*self.labellers, self.adjudicator):
            raise InputError(f"{labeller} is not on the panel of {', '.join(self.labellers)}")
        value = check_score(score, query)
        body = {"step": query.step, "id": query.id, "labeller": labeller, "score": value}
        # judgements are events of the audit's own record: a resumed panel knows who has spoken
        for entry in self.audit.record.append(REVIEWED, body)[1]:
            self.audit.replay(entry)
        return self._settle(query)

    def _settle(self, query: Query) -> bool:
        scores = self._judgements(query.step)
        labels = [scores[name] for name in self.labellers if name in scores]
        # each score becomes the audit's only once settled; judges never see one another's
        if self.adjudicator in scores:
            self.audit.tell(query, scores[self.adjudicator])
        elif len(labels) == len(self.labellers) and len(set(labels)) == 1:
            self.audit.tell(query, labels[0])
        else:
            return False
        return True

    def _judgements(self, step: int) -> dict[str, float | None]:
        """Return the last judgement of each person on a round."""
        reviews = [review for review in self.audit.reviews if review["step"] == step]
        return {review["labeller"]: review["score"] for review in reviews}

    def agreement(self) -> tuple[int, int]:
        """Count settled cases that all labellers judged, and among them cases judged alike."""
        judgements = [self._judgements(r.query.step) for r in self.audit.rounds if r.closed]
        whole = [scores for scores in judgements if set(self.labellers) <= set(scores)]
        both = [[scores[name] for name in self.labellers] for scores in whole]
        return sum(len(set(scores)) == 1 for scores in both), len(both)


class PanelSeat(LabelSession[Verdict]):
    """One labeller's place on a panel: asks for this person's judgements alone.

    Parameters
    ----------
    panel : AnnotatorPanel
    labeller : str

    Raises
    ------
    InputError
        If the person is not on the panel.
    """

    def __init__(self, panel: AnnotatorPanel, labeller: str) -> None:
        if labeller not in (*panel.labellers, panel.adjudicator):
            raise InputError(f"{labeller} is neither a labeller nor the adjudicator")
        self.panel, self.labeller = panel, labeller

    @property
    def standing(self) -> Verdict:
        """Return the verdict of the audit."""
        return self.panel.audit.verdict

    def ask(self) -> Query | None:
        """Return the open query if it is this person's turn, else None."""
        return self.panel.audit.ask() if self.labeller in self.panel.waiting() else None

    def tell(self, query: Query, score: float | None) -> None:
        """Record this person's judgement; see `AnnotatorPanel.judge`."""
        self.panel.judge(self.labeller, query, score)

    def undo(self) -> None:
        """Refuse: a settled case also rests on the judgements of others."""
        raise InputError("several people label each case: judge again before the case is settled")
