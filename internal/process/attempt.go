package process

// Attempt is what is asked for of a run that may execute outside of the manager's process, and
// outlive the manager.
type Attempt struct {
	// Request is the same for runs that are to do the same.
	Request string
	// Interrupted is true if the status shows a run whose result nobody has written: the manager that
	// started it has stopped.
	Interrupted bool
	Generation  int64
	Finalizing  bool
	// Placed is called with where the run executes and what it waits for, in words for people; either
	// is "" if there is none. nil: nobody asks.
	Placed func(place, waits string)
}
