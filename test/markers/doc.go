// Package markers runs the real ansible-runner on playbooks that print what a
// custom resource's author wrote, and shows that no text becomes a job event.
//
// It needs the Python environment that "make python" makes, and no cluster. It
// does not test that the author's text is never executed: extravars does.
package markers
