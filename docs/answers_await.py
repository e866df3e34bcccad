"""The service of answers.py, with a loop that waits for the GPU itself."""

import answers

import asyncgpu_tutor as agt

agt.use("cuda")
agt.current_device().patience_us = 50_000  # the loop asks for so long, then a thread does


class Awaited(answers.Service):
    """The loop enqueues the batches, and does other things until they're done."""

    fault = agt.DeviceError

    async def process(self, rows, lane):
        try:
            y = self.enqueue(rows, lane)
        finally:
            await agt.reached(lane.stream)
        return y.clone()

    async def run(self):
        try:
            await super().run()
        finally:  # whoever is cancelled hasn't waited for its batch
            for lane in self.lanes:
                await agt.reached(lane.stream)


answers.SERVICE, app = Awaited, answers.app
