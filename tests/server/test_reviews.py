"""Every recorded review, over TLS, on kept connections."""

import json

from server.conftest import posted, read_reply
from test_admission import BROKEN, recorded


def test_every_recorded_review_is_answered_over_tls(server):
    denied = []
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
                message = answer["response"]["status"]["message"]
                denied.append((line["path"], request["operation"], message.splitlines()[0]))
    assert len(lines) == 231
    assert denied == [("/validate?timeout=3s", "CREATE", BROKEN)]
