// Package markers runs playbooks that display what a custom resource's author wrote,
// in each place where Ansible displays something, as cold runs and as warm ones. It
// shows that no text becomes a job event, hinders one, or ends the run.
//
// It needs the Python environment that "make python" makes, and with
// the build tag "long" the environments of "make python-matrix"; no cluster. It does
// not test that the author's text is never executed: test/safevars does.
package markers
