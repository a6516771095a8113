"""Simulate: what is asked about and what happens to the cluster -> one answer for each event."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from webhook.cli.checking.frame import Frame
from webhook.cli.cluster_source import ClusterSource
from webhook.cli.simulating.asked import Asked
from webhook.cli.simulating.changes import Event, WhatIf, happen, is_made_anew, settle
from webhook.cli.simulating.forecast import forecast
from webhook.cli.simulating.helps import Help, helps
from webhook.cli.simulating.play import Ending, Outcomes, Verdict, alone, ending, play, undecided
from webhook.cli.simulating.pods import Loose, Maker, Player, loose_player, loose_pods, next_of, player
from webhook.cli.simulating.room import Room, room
from webhook.cli.simulating.words import Answer
from webhook.core.api.types import Pod
from webhook.core.explain.explanation import Explanation, explain_pod
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.placement.crowds import are_attracted
from webhook.core.placement.simulation import Effort, Outcome
from webhook.core.policy.capacity import grows
from webhook.core.text import listed, plural

_TOGETHER = 12  # parties of pods that are looked at together: the states of more are as good as endless
_HELPING = Effort(states=5_000, only_fits=True)  # for each change that is tried
_NAMES = 3
_TIMING = "whether terminating pods, which its affinity asks for, are gone before its pods look for a node"
_MOST_ENDS = 12  # workloads that are explained; each means to play all moves once more


class _Moment(NamedTuple):
    """What there is to place; ``others`` are pods of no maker, ``gone`` those that terminated."""

    players: Sequence[Player]
    others: Sequence[Loose]
    gone: Sequence[Pod]


class Run(Struct, frozen=True, kw_only=True):
    """One command: what is asked about, and how much is done for an answer."""

    known: ClusterSource
    asked: Asked
    frame: Frame
    effort: Effort
    rollout: bool = False
    tick: Callable[[int], None] = lambda _: None

    @property
    def index(self) -> ClusterIndex:
        """The cluster, which events change."""
        return self.known.index

    def answers(self, what_if: WhatIf) -> Iterator[Answer]:
        """The answer after each event.

        Errors: CommandError for an event that cannot happen in this cluster.
        """
        origin = {each.title: self._explained(each) for each in self.asked.makers} if not self.asked.everything else {}
        for event, moment in self._moments(what_if):
            yield self._answer(event, moment, origin)

    def outcomes(self, what_if: WhatIf) -> Iterator[Outcomes]:
        """The verdict alone after each event. Errors: as `answers`."""
        for _, moment in self._moments(what_if):
            yield self._played(moment.players)

    def _moments(self, what_if: WhatIf) -> Iterator[tuple[Event, _Moment]]:
        """What there is to place after each event, once all terminating pods are gone that will be."""
        waiting = [pod for namespace in self._namespaces() for pod in self.index.waiting_pods(namespace)]
        waiting = [pod for pod in waiting if pod.meta.deletion_timestamp is None]  # such a pod looks for no node
        gone = list[Pod]()
        for event in happen(what_if, self.index, self.asked.pods):
            gone += settle(self.index, [pod for pods in self.asked.pods.values() for pod in pods])
            controlled = [pod for pod in (*event.evicted, *filter(is_made_anew, gone)) if pod.meta.controller]
            others = loose_pods([*waiting, *controlled], self.asked.makers, self.index)
            yield event, _Moment(self._players(others, gone), others, tuple(gone))

    def _explained(self, maker: Maker) -> Explanation:
        return explain_pod(next_of(maker, self.frame, self.index).problem, brief=True)

    def _namespaces(self) -> Sequence[str]:
        named = self.asked.namespace if self.asked.everything else ""
        return (named,) if named else self.index.namespaces()

    def _players(self, others: Sequence[Loose], gone: Sequence[Pod]) -> list[Player]:
        players = [
            player(each, self.frame, self.index, rollout=self.rollout)
            for each in self.asked.makers
            if not self._is_complete(each)
        ]
        if self.asked.everything:
            players += [loose_player(each, self.frame, self.index) for each in others]
            players = [each for each in players if each.parties or each.unknown]
        return [replace(each, unknown=_TIMING) if are_attracted(each.parties, gone) else each for each in players]

    def _answer(
        self,
        event: Event,
        moment: _Moment,
        origin: Mapping[str, Explanation],
    ) -> Answer:
        players, others, gone = moment
        outcomes = self._played(players)
        stopped = outcomes.interrupted
        return Answer(
            outcomes=outcomes,
            likely=None if stopped else forecast(outcomes, self.index, self.frame.policy),
            ends=() if stopped else tuple(self._ends(outcomes, origin)),
            event=event.text,
            notes=tuple(self._notes(event, players, gone)),
            unseen=tuple(self._unseen(others)),
            room=Room() if stopped else room(outcomes, self.frame, self.index),
            scaled=None if stopped else self._scaled(players),
            grows=grows(self.frame.policy, self.index.view()),
        )

    def _scaled(self, players: Sequence[Player]) -> Verdict | None:
        """The verdict with each workload at its autoscaler's maximum; None where none may ask for more."""
        makers = [each.maker for each in players if each.maker is not None]
        if self.asked.everything or self.rollout or all(each.most <= each.replicas for each in makers):
            return None
        most = [replace(each, replicas=max(each.most, each.replicas)) for each in makers]
        again = [player(each, self.frame, self.index) for each in most]
        return play(again, self.index, self.effort, self.tick).whole

    def _played(self, players: Sequence[Player]) -> Outcomes:
        """All together; of many, or where that is not decided, each alone too."""
        parties = sum(len(each.parties) for each in players)
        if parties > _TOGETHER and self.asked.everything:
            return alone(undecided(players), self.index, self.effort, self.tick)
        found = play(players, self.index, self.effort, self.tick)
        if found.whole.outcome is not Outcome.UNKNOWN or len(players) < 2 or found.interrupted or found.unknown:
            return found
        return alone(found, self.index, self.effort, self.tick)

    def _ends(self, of: Outcomes, origin: Mapping[str, Explanation]) -> Iterator[tuple[Ending, tuple[Help, ...]]]:
        """For each player that may not fit how it ends, and what would help; if all fit, how it ends for the last."""
        bad = [number for number, each in enumerate(of.each) if each.outcome is not Outcome.FITS]
        for number in bad[:_MOST_ENDS] if len(of.players) > 1 and bad else [*range(len(of.players))][-1:]:
            about = of.about(number)
            place = 0 if of.alone else number
            end = ending(about, place, self.index, self.frame.policy)
            if end is None or (bad and not end.waiting and len(bad) > 1):
                continue
            found = tuple(helps(about, end, self.frame, self.index, _HELPING)) if end.waiting else ()
            if end.player.title in origin:
                end = replace(end, before=origin[end.player.title])
            yield end, found

    def _is_complete(self, maker: Maker) -> bool:
        """Whether all pods of it run; a quick look, since a cluster has thousands of workloads."""
        if not self.asked.everything or maker.own is None or maker.workload.traits.ordered:
            return False
        return sum(self.index.count(maker.namespace, maker.own).values()) >= maker.replicas

    def _notes(self, event: Event, players: Sequence[Player], gone: Sequence[Pod]) -> Iterator[str]:
        if gone:
            named = listed([f"{pod.meta.namespace}/{pod.meta.name}" for pod in gone], _NAMES)
            yield f"{plural(len(gone), 'terminating pod')} count{'s' * (len(gone) == 1)} as gone: {named}"
        bare = [f"{pod.meta.namespace}/{pod.meta.name}" for pod in event.evicted if pod.meta.controller is None]
        if bare:
            are = "has no controller and is" if len(bare) == 1 else "have no controller and are"
            yield f"{plural(len(bare), 'pod')} {are} gone for good: {listed(bare, _NAMES)}"
        for each in players:
            maker = each.maker
            if maker is None:
                continue
            if maker.workload.suspended:
                yield f"{each.title} is suspended: its controller makes no pod now"
            if maker.workload.paused and (self.rollout or not maker.applied):
                yield f"{each.title} is paused: its controller makes no pod of a new template before you resume it"
            if each.rollout is not None and maker.workload.recreates:
                yield f"{each.title}: all old pods are gone before a new one is made (Recreate)"
            if not maker.applied and each.staying and not self.rollout:
                run, they = ("pod runs", "it is") if each.staying == 1 else ("pods run", "they are")
                stay = "stays" if each.staying == 1 else "stay"
                yield f"{each.staying:,} {run} already and {stay}; with --rollout {they} replaced"
            leaving = self._leaving(maker) if maker.workload.traits.ordered else 0
            if leaving:
                lost = f"{plural(leaving, 'pod')} stay{'s' * (leaving == 1)} on nodes that cannot be reached"
                yield f"{each.title}: {lost}; no other is made before somebody deletes it by force, or the node"

    def _leaving(self, maker: Maker) -> int:
        """Its pods that are being deleted."""
        if maker.own is None:
            return 0
        every = self.index.count(maker.namespace, maker.own, leaving=True)
        return sum(every.values()) - sum(self.index.count(maker.namespace, maker.own).values())

    def _unseen(self, others: Sequence[Loose]) -> Iterator[str]:
        pods = sum(len(each.names) for each in others)
        if pods and not self.asked.everything:
            yield f"OtherPods: {plural(pods, 'pod')} of other workloads that look{'s' * (pods == 1)} for a node too"
        yield from self.asked.unreadable
        yield from self.known.missing
