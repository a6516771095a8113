"""The process that judges costly objects, where looking at one never ends."""

from webhook.server.costly import process as costly_process


def decided(_job, _server):
    while True:
        pass


costly_process.decide = decided
costly_process.main()
