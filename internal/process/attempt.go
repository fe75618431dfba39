package process

// Attempt is a requested run that may execute outside of the manager's process, and outlive the
// manager.
type Attempt struct {
	// Request is the same for runs that are to do the same.
	Request string
	// Interrupted is true if the status shows a run without a result: the manager that started it has
	// stopped.
	Interrupted bool
	Generation  int64
	Finalizing  bool
	// Located is called with the place where the run executes and the reason why it waits, in words
	// for people; either is "" if there is none. nil: it is not called.
	Located func(place, waitingFor string)
}
