// Package secrets plants canaries, distinct random texts, in every place that
// holds a secret: arguments and results under no_log, vault passwords and what
// they encrypt, the manager's environment, tokens, data of Secrets. Then it runs
// the real manager with the real ansible-runner against a real API server, and
// looks for them in logs, custom resources, Events, metrics, command lines and in
// every file that is left.
//
// In `make test`: one manager at the verbosity that it has by default, with
// --diff and Everything logged, a run that succeeds and one that fails. With the
// build tag "long", `make test-all`: verbosities 0 to 4, every level and form of
// the log, every way in which a run ends, and a manager that is killed.
//
// testdata/operator is a project in which a name between two pairs of @ stands
// for a canary: adding one there is all it takes. Names that begin with "shown"
// are the control: they must be found.
//
// It does not look for what a role's author prints himself: a variable that is
// registered under no_log and shown by a task without it, output of commands, lines
// of a file that does not parse. The environment of a task is left out
// too: Ansible puts that on the command line of a shell.
package secrets
