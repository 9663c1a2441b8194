import TuttiTiming

func age(of event: GroupInstant, at local: LocalInstant, by shared: SharedClock) -> Nanoseconds {
    let now: GroupInstant = shared.map(local)
    return now - event  // `local - event` does not compile: there is no such operator
}
