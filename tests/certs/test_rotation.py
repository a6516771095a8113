"""Which CA signs and which are trusted, over years of a cluster's life."""

import base64
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from certs.authority import (
    CertificateError,
    Pair,
    certificate_of,
    expires,
    issue_authority,
    issue_leaf,
    trust_fault,
)
from certs.rotation import (
    Lifetimes,
    authority_fault,
    certificates_in,
    leaf_due,
    new_leaf,
    next_authorities,
    read_secret_data,
    secret_data,
    usable_authorities,
)

NOW = datetime(2026, 11, 22, 9, 0, tzinfo=UTC)
LIVES = Lifetimes()
NAME = "evenspread-webhook.evenspread.svc"
DAY = timedelta(days=1)
FIRST = usable_authorities(None, NOW, LIVES)
DUE = NOW + 244 * DAY  # two thirds of a year
ANNOUNCED = next_authorities(FIRST, DUE, LIVES, published=True)
OVERLAPPING = next_authorities(ANNOUNCED, DUE + timedelta(hours=1), LIVES, published=True)
LEAF = issue_leaf(FIRST.signing, [NAME], NOW)


def step(held, now, *, published=True):
    return next_authorities(held, now, LIVES, published=published)


# -- the value


@pytest.mark.parametrize("held", [FIRST, ANNOUNCED, OVERLAPPING], ids=["one CA", "announced", "overlap"])
def test_what_is_written_reads_back(held):
    assert read_secret_data(secret_data(held)) == held


@pytest.mark.parametrize(
    "data",
    [
        pytest.param({}, id="as the chart renders it"),
        pytest.param({**secret_data(FIRST), "tls.crt": b"junk"}, id="no certificate"),
        pytest.param({**secret_data(FIRST), "ca.crt": b"junk"}, id="no bundle"),
        pytest.param({**secret_data(FIRST), "signs-since": b"yesterday"}, id="no time"),
        pytest.param({**secret_data(FIRST), "next.crt": FIRST.signing.certificate}, id="a next CA without its key"),
    ],
)
def test_what_cannot_be_read_is_nothing(data):
    assert read_secret_data(data) is None


def test_the_own_cas_are_trusted_whatever_the_bundle_says():
    other = issue_authority(NOW, common_name="other").certificate
    held = read_secret_data({**secret_data(ANNOUNCED), "ca.crt": other})
    assert held.trusted == (*ANNOUNCED.trusted, other)


def test_a_bundle_names_each_certificate_once():
    assert certificates_in(FIRST.bundle + b"\n# a comment\n" + FIRST.bundle) == FIRST.trusted
    with pytest.raises(CertificateError, match=r"^the CA bundle is not PEM$"):
        certificates_in(b"junk")


# -- the steps, one after the other


def test_an_empty_secret_gets_a_ca_for_a_year():
    assert expires(FIRST.signing.certificate) == NOW + 365 * DAY
    assert (FIRST.trusted, FIRST.coming, FIRST.since) == ((FIRST.signing.certificate,), None, NOW)


def test_nothing_is_due_for_two_thirds_of_a_year():
    assert step(FIRST, DUE - DAY) is FIRST


def test_the_next_ca_is_trusted_before_it_signs():
    assert ANNOUNCED.signing == FIRST.signing
    assert ANNOUNCED.trusted == (FIRST.signing.certificate, ANNOUNCED.coming.certificate)
    assert expires(ANNOUNCED.coming.certificate) == DUE + 365 * DAY


@pytest.mark.parametrize(
    ("after", "published"),
    [pytest.param(timedelta(minutes=59), True, id="too early"), pytest.param(DAY, False, id="nobody trusts it yet")],
)
def test_the_next_ca_does_not_sign_before_everybody_trusts_it(after, published):
    assert step(ANNOUNCED, DUE + after, published=published) is ANNOUNCED


def test_the_next_ca_signs_once_published_and_both_are_trusted():
    assert OVERLAPPING.signing == ANNOUNCED.coming
    assert {*OVERLAPPING.trusted} == {*ANNOUNCED.trusted}
    assert (OVERLAPPING.coming, OVERLAPPING.since) == (None, DUE + timedelta(hours=1))
    assert FIRST.signing.key not in secret_data(OVERLAPPING).values()


def test_the_former_ca_is_trusted_until_its_last_leaf_has_ended():
    ended = OVERLAPPING.since + 7 * DAY + timedelta(hours=1)
    assert step(OVERLAPPING, ended - timedelta(seconds=1)) is OVERLAPPING
    assert step(OVERLAPPING, ended).trusted == (ANNOUNCED.coming.certificate,)


def test_an_overlap_is_shorter_where_leaves_live_for_minutes():
    lives = Lifetimes(authority=timedelta(minutes=9), leaf=timedelta(minutes=4))
    held = usable_authorities(None, NOW, lives)
    announced = next_authorities(held, NOW + timedelta(minutes=6), lives, published=True)
    over = next_authorities(announced, NOW + timedelta(minutes=7), lives, published=True)
    assert (announced.coming is None, over.signing == announced.coming) == (False, True)


# -- what goes wrong


@pytest.mark.parametrize(
    "held",
    [
        pytest.param(replace(FIRST, signing=replace(FIRST.signing, key=LEAF.key)), id="the key of another"),
        pytest.param(replace(FIRST, signing=LEAF), id="no CA"),
        pytest.param(replace(FIRST, signing=Pair(certificate=b"", key=b"")), id="nothing"),
    ],
)
def test_what_cannot_sign_is_replaced(held):
    fresh = usable_authorities(held, NOW, LIVES)
    assert authority_fault(fresh.signing, NOW, LIVES) is None
    assert fresh.trusted == (fresh.signing.certificate,)


@pytest.mark.parametrize("at", [NOW + 365 * DAY, NOW - DAY], ids=["ended", "the clock went back"])
def test_a_ca_that_is_not_valid_now_is_replaced(at):
    assert usable_authorities(FIRST, at, LIVES).signing != FIRST.signing
    assert step(FIRST, at).signing != FIRST.signing


def test_if_nobody_rotated_in_time_the_next_ca_takes_over():
    late = usable_authorities(ANNOUNCED, NOW + 365 * DAY, LIVES)
    assert (late.signing, late.trusted) == (ANNOUNCED.coming, ANNOUNCED.trusted[::-1])


def test_a_next_ca_of_a_clock_that_was_wrong_is_replaced():
    ahead = replace(ANNOUNCED, coming=issue_authority(NOW + 400 * DAY))
    again = step(ahead, DUE)
    assert again.signing == FIRST.signing
    assert certificate_of(again.coming.certificate).not_valid_before_utc == DUE - timedelta(hours=1)


def test_with_both_ended_there_is_a_new_one():
    assert len(usable_authorities(ANNOUNCED, NOW + 1000 * DAY, LIVES).trusted) == 1


# -- leaves


def test_a_leaf_is_of_the_ca_that_signs():
    for held, now in ((FIRST, NOW), (ANNOUNCED, DUE), (OVERLAPPING, DUE + DAY)):
        leaf = new_leaf(held, [NAME], now, LIVES)
        assert expires(leaf.certificate) == now + 7 * DAY
        assert trust_fault(leaf.certificate, held.signing.certificate, NAME, now) is None
        assert leaf_due(leaf.certificate, held, NAME, now, LIVES) is None


def test_a_leaf_that_clients_would_refuse_is_not_served():
    distrusted = replace(FIRST, trusted=(issue_authority(NOW).certificate,))
    with pytest.raises(CertificateError, match=r"^the new certificate would be refused: "):
        new_leaf(distrusted, [NAME], NOW, LIVES)


@pytest.mark.parametrize(
    ("held", "name", "at", "why"),
    [
        pytest.param(FIRST, NAME, 5 * DAY, "two thirds of its life are over", id="old"),
        pytest.param(FIRST, NAME, 30 * DAY, "two thirds of its life are over", id="ended long ago"),
        pytest.param(FIRST, "other.svc", DAY, "no matching subjectAltName", id="another name"),
        pytest.param(FIRST, NAME, -DAY, "not valid at validation time", id="not valid yet"),
    ],
)
def test_when_another_leaf_is_needed(held, name, at, why):
    assert why in leaf_due(LEAF.certificate, held, name, NOW + at, LIVES)


def test_another_leaf_is_needed_once_another_ca_signs():
    leaf = new_leaf(ANNOUNCED, [NAME], DUE, LIVES)
    assert leaf_due(leaf.certificate, ANNOUNCED, NAME, DUE, LIVES) is None
    assert leaf_due(leaf.certificate, OVERLAPPING, NAME, OVERLAPPING.since, LIVES) is not None


# -- all of it, in any order

QUICK = Lifetimes(authority=timedelta(hours=60), leaf=timedelta(hours=12))  # an overlap of one hour
MINUTE = timedelta(minutes=1)


class World:
    """A Secret, two API servers that hear of a bundle late, three replicas that look at the Secret now and then."""

    def __init__(self):
        self.now = NOW
        self.secret = {}
        self.configured = b""  # the caBundle
        self.api_servers = [b"", b""]
        self.leaves = [None, None, None]

    def replica(self, number):
        held = read_secret_data(self.secret)
        ready = usable_authorities(held, self.now, QUICK)
        if ready is not held:
            self.secret = secret_data(ready)
        leaf = self.leaves[number]
        if leaf is None or leaf_due(leaf.certificate, ready, NAME, self.now, QUICK) is not None:
            self.leaves[number] = new_leaf(ready, [NAME], self.now, QUICK)

    def controller(self):
        held = read_secret_data(self.secret)
        published = held is not None and self.configured == held.bundle
        following = next_authorities(held, self.now, QUICK, published=published)
        if following is not held:
            self.secret = secret_data(following)
        self.configured = following.bundle

    def hear(self, number):
        self.api_servers[number] = base64.b64decode(base64.b64encode(self.configured))

    def refused(self):
        return [
            fault
            for leaf in self.leaves
            for bundle in self.api_servers
            if (fault := trust_fault(leaf.certificate, bundle, NAME, self.now)) is not None
        ]


@pytest.mark.slow
@given(data=st.data())
@settings(max_examples=3, deadline=None)
def test_no_leaf_is_ever_refused_by_an_api_server(data):
    """Replicas and API servers that are late by less than an hour, a controller by five, through several CAs."""
    world = World()
    for number in range(3):
        world.replica(number)
    world.controller()
    acts = [lambda n=n: world.replica(n) for n in range(3)] + [lambda n=n: world.hear(n) for n in range(2)]
    for number in range(2):
        world.hear(number)
    turns = data.draw(st.lists(st.tuples(st.permutations(range(5)), st.booleans()), min_size=12, max_size=40))
    cas = set()
    for number in range(180):  # each takes 50 minutes
        order, elected = turns[number % len(turns)]
        world.now += 25 * MINUTE
        if elected or number % 6 == 0:
            world.controller()
        for act in order:
            acts[act]()
        world.now += 25 * MINUTE
        assert world.refused() == []
        cas.add(read_secret_data(world.secret).signing.certificate)
    assert 3 <= len(cas) <= 5


def test_years_of_a_cluster_pass_through_every_state():
    held, seen = FIRST, []
    for day in range(1200):
        following = step(held, NOW + day * DAY)
        if following is not held:
            seen.append((len(following.trusted), following.coming is not None))
            held = following
    assert seen == [(2, True), (2, False), (1, False)] * 4
