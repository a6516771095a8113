"""A path to the API server on which everything it says comes late, as over a slow network."""

import asyncio
import contextlib
import pathlib
import threading
import urllib.parse
from collections.abc import Iterator

from e2e.controlplane.up import HOST, ControlPlane


@contextlib.contextmanager
def late(plane: ControlPlane, folder: pathlib.Path, seconds: float) -> Iterator[pathlib.Path]:
    """The admin's kubeconfig, by way of the relay."""
    port = urllib.parse.urlsplit(plane.url).port
    loop = asyncio.new_event_loop()
    ends: list[asyncio.WriteTransport] = []

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answers, requests = await asyncio.open_connection(HOST, port)
        ends.extend((writer.transport, requests.transport))
        await asyncio.gather(_copy(reader, requests, 0.0), _copy(answers, writer, seconds))

    async def end() -> None:
        server.close()
        for transport in ends:
            transport.abort()
        await asyncio.wait(asyncio.all_tasks() - {asyncio.current_task()})

    server = loop.run_until_complete(asyncio.start_server(relay, HOST))
    own = server.sockets[0].getsockname()[1]
    kubeconfig = folder / "late.kubeconfig"
    kubeconfig.write_text(plane.admin.read_text().replace(plane.url, f"https://{HOST}:{own}"))
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield kubeconfig
    finally:
        asyncio.run_coroutine_threadsafe(end(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seconds: float) -> None:
    loop = asyncio.get_running_loop()
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(65536):
            loop.call_later(seconds, writer.write, data)
    await asyncio.sleep(seconds)
    writer.close()
