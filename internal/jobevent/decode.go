package jobevent

import "io"

// Handler receives what Decode finds, on Decode's goroutine and in order. Both
// functions may be nil.
type Handler struct {
	// Event receives this run's job events.
	Event func(Event)
	// Output receives text that is no job event, line by line, without its line
	// end and cut to 64 KiB: what Ansible displays outside of tasks (warnings,
	// errors, verbose messages) and whatever was printed past Ansible.
	Output func(line string)
}

// Decode reads the standard output of "ansible-runner run --json" until its
// end. The run must have been started with JOB_ID=<nonce> in its environment:
// only a line that is one JSON object whose single top-level job_id is the
// integer nonce is a job event. Everything else goes to Output; nothing that a
// line holds is an error. The error is the reader's, other than io.EOF.
func Decode(r io.Reader, nonce int64, h Handler) error {
	panic("to come")
}
