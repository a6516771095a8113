"""The sentences of ``evenspread simulate``: the verdict, how it comes about, and what is not looked at."""

from collections import Counter
from fractions import Fraction

from webhook.core.explain.cause_text import not_evaluated_lines
from webhook.core.placement.simulation import Outcome
from webhook.core.text import listed, one_line, plural
from webhook.core.what_if.play import Outcomes, Verdict
from webhook.core.what_if.run import Answer

_NAMES = 3
_ORDER = ", in whatever order"
_MOST_NODES = 6
_SMALL = 20  # a probability with a denominator up to here is said as a fraction


def who(of: Outcomes) -> str:
    """The workloads: ``Deployment shop/web``; of several how many, and the first names."""
    titles = [one_line(each.title, 80) for each in of.workloads]
    if len(titles) == 1:
        return titles[0]
    return f"{plural(len(titles), 'workload')} ({listed(titles, _NAMES)})"


def verdict(of: Outcomes) -> str:
    """The verdict in one sentence."""
    several = len(of.workloads) > 1
    if not of.workloads:
        return "every workload fits: no pod looks for a node"
    if not of.alone:
        return f"{who(of)} {told(of.whole, settled=of.game is None, several=several)}"
    bad = sum(each.outcome is Outcome.NO_FIT for each in of.each)
    stuck = sum(each.outcome is Outcome.STUCK for each in of.each)
    found = [f"{bad:,} do{'es' * (bad == 1)} not fit"] * bool(bad) + [f"{stuck:,} can get stuck"] * bool(stuck)
    return f"{who(of)}: {' and '.join(found) or 'none of them is known to lack room'}, each looked at alone"


def told(found: Verdict, *, settled: bool = False, several: bool = False) -> str:
    """A verdict without its subject: ``does not fit: 3 of 6 pods get a node, in whatever order``.

    Shape: ``settled`` says that no pod looks for a node.
    """
    fewest, most, wanted = found.fewest, found.most, found.wanted
    pods = {1: "the pod", 2: "both pods"}.get(wanted, f"all {plural(wanted, 'pod')}")
    match found.outcome:
        case Outcome.FITS:
            gets = f"ha{'ve' if wanted != 1 else 's'}" if settled else f"get{'s' * (wanted == 1)}"
            order = " already" if settled else _ORDER * (wanted != 1)
            return f"{'fit' if several else 'fits'}: {pods} {gets} a node{order}"
        case Outcome.NO_FIT if wanted == 1:
            return "does not fit: no node takes the pod"
        case Outcome.NO_FIT:
            number = f"{most or 0:,}" if fewest == most else f"{fewest or 0:,} to {most or 0:,}"
            gets, does = f"get{'s' * (number == '1')}", "do" if several else "does"
            return f"{does} not fit: {number} of {plural(wanted, 'pod')} {gets} a node{_ORDER}"
        case Outcome.STUCK:
            rest = "some" if fewest is None else f"{'up to ' * (wanted - fewest > 1)}{wanted - fewest:,}"
            stay = f"stay{'s' * (rest == '1')}"
            return f"can get stuck: {pods} get a node in some orders, in others {rest} {stay} Pending"
        case _:
            bounds = ""
            if fewest is not None and most is not None:
                bounds = f": at least {fewest:,} and at most {most:,} of {plural(wanted, 'pod')} get a node{_ORDER}"
            return f"{'are' if several else 'is'} not decided{bounds}"


def doubt(of: Outcomes) -> str:
    """Why the verdict is unknown, and what is known nevertheless; empty where it is not."""
    if of.unknown:
        return f"not known: {of.unknown}"
    found = of.simulation
    if found is None or found.outcome is not Outcome.UNKNOWN:
        return ""
    looked = f"{plural(found.states, 'state')} looked at"
    if of.interrupted:
        return f"interrupted with {looked}; none of them says more"
    if not found.sampled:
        return f"{looked}, more than allowed (--states)"
    stuck = round((found.stuck or 0) * found.sampled)
    tried = f"none of {plural(found.sampled, 'single order')} tried got stuck, which proves nothing"
    if stuck:
        tried = f"{stuck:,} of {plural(found.sampled, 'single order')} tried left pods Pending"
    return f"{looked}, and there are more (--states); {tried}"


def odds(of: Outcomes) -> str:
    """How often an order gets stuck; empty where that is not known, or plain."""
    found = of.simulation
    if found is None or found.outcome is not Outcome.STUCK or found.stuck is None:
        return ""
    if found.sampled:
        return f"{round(found.stuck * found.sampled):,} of {found.sampled:,} single orders tried get stuck"
    exact = Fraction(found.stuck).limit_denominator(_SMALL)
    said = f"{exact.numerator:,} in {exact.denominator:,}" if abs(exact - found.stuck) < 1e-9 else ""
    share = said or f"{found.stuck * 100:.2g} %"
    return f"{share} of these orders get stuck, if every pod and every node is as likely as any other"


def scaled_line(answer: Answer) -> str:
    """What becomes of as many pods as autoscalers may ask for; empty where none may ask for more."""
    of, scaled = answer.outcomes, answer.scaled
    if scaled is None:
        return ""
    several = len(of.workloads) > 1
    whose = "each autoscaler's" if several else "the autoscaler's"
    subject = "they" if several else "it"
    return f"at {whose} maximum ({plural(scaled.wanted, 'pod')}) {subject} {told(scaled, several=several)}"


def likely_line(answer: Answer) -> str:
    """Where the scheduler would most likely put the pods, and how often it would get stuck; empty where none fits."""
    of, likely = answer.outcomes, answer.likely
    if likely is None or not likely.placed or of.whole.outcome is Outcome.NO_FIT:
        return ""
    nodes = Counter(each.node for each in likely.placed)
    shown = listed([f"{pods:,} on {one_line(node, 40)}" for node, pods in sorted(nodes.items())], _MOST_NODES)
    told = f"by its scores the scheduler would most likely put {shown}"
    if any(each.best > 1 for each in likely.placed):
        told += ", or nodes as good"
    return f"{told}; {likely.stuck:,} of {likely.runs:,} such runs get stuck" if likely.runs else told


def not_evaluated(answer: Answer) -> list[str]:
    """A line for each thing that could change the answer and is not looked at."""
    keys = dict.fromkeys(key for end, _ in answer.ends for key in end.after.not_evaluated)
    made = any(each.maker is not None for each in answer.outcomes.workloads)
    unknown = dict.fromkeys(key for each in answer.outcomes.workloads for key in each.unadmitted)
    lines = not_evaluated_lines(keys, [*unknown, *["AdmissionPlugins"] * made])
    return [*lines, *map(one_line, answer.unseen)]
