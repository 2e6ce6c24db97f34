"""A worker for topic jobs in Python: enqueue, work, check.

    python worker.py enqueue 100    enqueues jobs
    python worker.py work           works on them until Ctrl-C
    python worker.py check 200      does both, and fails unless every job was handled exactly once

GIGA_URL, GIGA_TOKEN and GIGA_PRODUCT say where and who.
"""

import argparse
import collections
import concurrent.futures
import os
import pathlib
import queue
import random
import signal
import socket
import sys
import threading
import time
import urllib.parse

import grpc

import stubs

stubs.generate(pathlib.Path(os.environ.get("GIGA_STUBS", stubs.BUILD)))

from gigafactory.v1 import dispatch_pb2 as pb  # noqa: E402
from gigafactory.v1 import dispatch_pb2_grpc as rpc  # noqa: E402

BATCH = 1000
# A repetition of the same call would get the same answer.
FINAL = {
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.UNAUTHENTICATED,
    grpc.StatusCode.PERMISSION_DENIED,
    grpc.StatusCode.UNIMPLEMENTED,
}


class Permanent(Exception):
    """Raised by a handler when no repetition can help."""


class Client:
    """The calls of the coordinator, each signed with the token."""

    def __init__(self, url, token, product=None):
        address = urllib.parse.urlsplit(url)
        options = [("grpc.max_receive_message_length", -1), ("grpc.keepalive_time_ms", 20_000)]
        if address.scheme == "https":
            host = address.netloc if address.port else f"{address.netloc}:443"
            self.channel = grpc.secure_channel(host, grpc.ssl_channel_credentials(), options)
        elif address.scheme == "http":
            self.channel = grpc.insecure_channel(address.netloc, options)
        else:
            raise SystemExit("GIGA_URL: wanted http://host:port or https://host")
        self.calls = rpc.DispatchStub(self.channel)
        self.metadata = [("authorization", f"Bearer {token}")]
        if product:
            self.metadata.append(("x-product-id", product))

    def enqueue(self, jobs):
        """Enqueues `pb.NewJob`s; each call is taken whole or not at all."""
        answers = []
        for at in range(0, len(jobs), BATCH):
            request = pb.EnqueueRequest(jobs=jobs[at : at + BATCH])
            answers += self.calls.Enqueue(request, metadata=self.metadata).jobs
        return answers


class Worker:
    """Runs `handler(assignment)` for the jobs of some topics, a number of them at once.

    A handler that returns has succeeded. One that raises has failed, and the job is tried again as its retry policy says,
    unless it raised `Permanent`.
    """

    def __init__(self, client, topics, handler, concurrency=10):
        self.client, self.topics, self.handler, self.concurrency = client, topics, handler, concurrency
        self.worker_id = f"{socket.gethostname()}-{os.getpid()}-{random.randrange(1 << 24):06x}"
        self.stopping = threading.Event()
        self.results = queue.Queue()
        self.lock = threading.Lock()
        self.held = {}  # job id -> assignment
        self.lease_ms = 1_000  # until a job says how long leases are here
        self.heartbeats = 0
        self.statuses = collections.Counter()
        self.refused = None
        self.stream = None

    def run(self):
        """Works until `stop()`, then finishes what it has in hand and reports it."""
        reporter = threading.Thread(target=self._report)
        keeper = threading.Thread(target=self._keep, daemon=True)
        reporter.start()
        keeper.start()
        with concurrent.futures.ThreadPoolExecutor(self.concurrency) as lanes:
            pause = 0.05
            while self._wait_for_room():
                try:
                    self._take(lanes)
                    pause = 0.05
                except grpc.RpcError as error:
                    if error.code() in FINAL:
                        self.refused = error
                        self.stop()
                # The coordinator went away, or the stream was cut: come back, but not all workers in the same instant.
                self.stopping.wait(pause * random.uniform(0.5, 1))
                pause = min(pause * 2, 5)
        self.results.put(None)
        reporter.join()
        if self.refused:
            raise SystemExit(f"the coordinator refused: {self.refused.details()}")

    def stop(self):
        self.stopping.set()
        if self.stream:
            self.stream.cancel()

    def _wait_for_room(self):
        """A new stream does not count what came over the old one: with full hands, another load would be too much.
        False when the worker is to stop."""
        while len(self.held) >= 2 * self.concurrency and not self.stopping.is_set():
            self.stopping.wait(0.05)
        return not self.stopping.is_set()

    def _take(self, lanes):
        request = pb.StreamJobsRequest(
            topics=self.topics, worker_id=self.worker_id, max_in_flight=2 * self.concurrency
        )
        self.stream = self.client.calls.StreamJobs(request, metadata=self.client.metadata)
        if self.stopping.is_set():  # told to while the stream was being opened
            self.stream.cancel()
        for message in self.stream:
            for assignment in message.assignments:
                with self.lock:
                    self.held[assignment.job_id] = assignment
                    self.lease_ms = assignment.lease_ms
                lanes.submit(self._handle, assignment)

    def _handle(self, assignment):
        if not self._holds(assignment):
            return  # lost while it waited for a thread; another worker may have it by now
        result = pb.JobResult(job_id=assignment.job_id, epoch=assignment.epoch)
        if self.stopping.is_set():
            result.release.SetInParent()
        else:
            try:
                self.handler(assignment)
                result.success.SetInParent()
            except Exception as error:  # whatever a handler raises is a failure of that job only
                result.failure.error = str(error) or type(error).__name__
                result.failure.permanent = isinstance(error, Permanent)
        if self._holds(assignment, and_lets_go=True):
            self.results.put(result)
        else:
            print(f"{assignment.job_id} was lost; its result is dropped", file=sys.stderr)

    def _holds(self, assignment, and_lets_go=False):
        with self.lock:
            held = self.held.get(assignment.job_id)
            if held is None or held.epoch != assignment.epoch:
                return False
            if and_lets_go:
                del self.held[assignment.job_id]
            return True

    def _report(self):
        """While a call is under way, what finishes meanwhile collects for the next."""
        while (result := self.results.get()) is not None:
            batch = [result]
            while len(batch) < BATCH and not self.results.empty():
                more = self.results.get()
                if more is None:
                    self.results.put(None)
                    break
                batch.append(more)
            self._send(pb.ReportResultRequest(worker_id=self.worker_id, results=batch))

    def _send(self, report):
        """Repeated until it is answered, which is safe, or until the leases must be over."""
        give_up, pause = time.monotonic() + self.lease_ms / 1000, 0.05
        while time.monotonic() < give_up:
            try:
                answer = self.client.calls.ReportResult(report, metadata=self.client.metadata, timeout=10)
                self.statuses.update(answer.statuses)
                return
            except grpc.RpcError as error:
                if error.code() in FINAL:
                    self.refused = error
                    self.stop()
                    return
            time.sleep(pause * random.uniform(0.5, 1))
            pause = min(pause * 2, 5)

    def _keep(self):
        """Renews what is held, every third of a lease, all in one call."""
        while True:
            time.sleep(self.lease_ms / 3000)
            with self.lock:
                held = [pb.Held(job_id=job.job_id, epoch=job.epoch) for job in self.held.values()]
            for at in range(0, len(held), BATCH):
                request = pb.HeartbeatRequest(worker_id=self.worker_id, held=held[at : at + BATCH])
                try:
                    answer = self.client.calls.Heartbeat(request, metadata=self.client.metadata, timeout=10)
                except grpc.RpcError:
                    continue  # the next round is early enough
                self.heartbeats += 1
                with self.lock:
                    self.lease_ms = answer.lease_ms or self.lease_ms
                    for job_id in answer.lost_job_ids:
                        self.held.pop(job_id, None)


def check(client, topic, count):
    """Every job exactly once: also the one that fails at first, and the one that outlives its first lease."""
    handled, failed_once = collections.Counter(), collections.Counter()
    lock, all_done = threading.Lock(), threading.Event()

    def handler(assignment):
        name = assignment.payload.decode()
        if name == "flaky" and assignment.attempt == 1:
            failed_once[name] += 1
            raise RuntimeError("not at the first try")
        if name == "slow":
            time.sleep(1.5 * assignment.lease_ms / 1000)
        with lock:
            handled[name] += 1
            if len(handled) == count:
                all_done.set()

    names = ["slow", "flaky"] + [f"plain-{n}" for n in range(count - 2)]
    # A topic of its own, so that nothing which somebody left behind is counted.
    topic = f"{topic}-{random.randrange(1 << 32):08x}"
    retry = pb.Retry(max=3, backoff_ms=100)
    jobs = [pb.NewJob(topic=topic, payload=name.encode(), idempotency_key=name, retry=retry) for name in names]
    first = client.enqueue(jobs)
    again = client.enqueue(jobs)
    if [job.job_id for job in first] != [job.job_id for job in again] or not all(job.existing for job in again):
        raise SystemExit("the same keys gave other jobs")

    worker = Worker(client, [topic], handler)
    thread = threading.Thread(target=worker.run)
    thread.start()
    in_time = all_done.wait(120)
    # What would come a second time comes within a lease.
    time.sleep(worker.lease_ms / 1000)
    worker.stop()
    thread.join()

    wrong = {name: handled[name] for name in names if handled[name] != 1}
    recorded = worker.statuses.pop(pb.RESULT_STATUS_RECORDED, 0)
    if not in_time or wrong or worker.statuses or recorded != count + 1 or not worker.heartbeats:
        raise SystemExit(
            f"failed: not handled exactly once: {wrong}; {recorded} results recorded of {count + 1}; "
            f"not recorded: {dict(worker.statuses)}; {worker.heartbeats} heartbeats"
        )
    print(f"ok: {count} jobs handled exactly once, {sum(failed_once.values())} of them at the second try")


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("command", choices=["enqueue", "work", "check"])
    arguments.add_argument("count", nargs="?", type=int, default=100)
    arguments.add_argument("--topic", default="python-example")
    arguments = arguments.parse_args()
    if arguments.count < 2:
        raise SystemExit("count: at least 2")
    token = os.environ.get("GIGA_TOKEN")
    if not token:
        raise SystemExit("GIGA_TOKEN is not set")
    url = os.environ.get("GIGA_URL", "http://127.0.0.1:7717")
    client = Client(url, token, os.environ.get("GIGA_PRODUCT"))

    if arguments.command == "enqueue":
        jobs = [pb.NewJob(topic=arguments.topic, payload=f"plain-{n}".encode()) for n in range(arguments.count)]
        print(f"enqueued {len(client.enqueue(jobs))} jobs")
    elif arguments.command == "work":
        worker = Worker(client, [arguments.topic], lambda job: print(f"{job.job_id}: {job.payload.decode()}"))
        for name in (signal.SIGINT, signal.SIGTERM):
            signal.signal(name, lambda *_: worker.stop())
        worker.run()
    else:
        check(client, arguments.topic, arguments.count)


if __name__ == "__main__":
    try:
        main()
    except grpc.RpcError as error:
        sys.exit(f"{error.code().name}: {error.details()}")
