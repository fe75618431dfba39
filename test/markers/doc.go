// Package markers runs the real ansible-runner on playbooks that print what a
// custom resource's author wrote, in every field of it, and shows that no text
// becomes a job event.
//
// It needs the Python environment that "make python" makes, and with the build
// tag "long" those of "make python-matrix"; no cluster. It does not test that
// the author's text is never executed: test/safevars does.
package markers
