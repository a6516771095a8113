"""Every recorded review, over TLS, on kept connections."""

import json

from server.conftest import posted, read_reply
from test_admission import recorded


def test_every_recorded_review_is_answered_over_tls(server):
    denied = set()
    lines = recorded()
    with server.connect() as connection, connection.makefile("rb") as stream:
        for line in lines:
            connection.sendall(posted(json.dumps(line["review"]).encode(), line["path"]))
            reply = read_reply(stream)
            assert (reply.status, reply.headers["content-type"]) == (200, "application/json")
            answer = json.loads(reply.body)
            assert (answer["apiVersion"], answer["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
            request = line["review"]["request"]
            assert answer["response"]["uid"] == request["uid"]
            if not answer["response"]["allowed"]:
                denied.add((line["path"], request["kind"]["kind"], request["name"], request["operation"]))
    assert len(lines) == 231
    assert denied == {("/validate?timeout=3s", "Rollout", "broken", "CREATE")}
