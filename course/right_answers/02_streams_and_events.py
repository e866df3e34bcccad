"""Right answers to exercises of course/02_streams_and_events.py in other forms than the solution's."""


# %% id=02-fork-join
def fork_join(prepare, branches, combine, main, streams):
    prepare.async_on(main)
    ready = main.record()
    for branch, stream in zip(branches, streams, strict=True):
        stream.wait_event(ready)
        branch.async_on(stream)
        main.wait_event(stream.record())
    return combine.async_on(main)
