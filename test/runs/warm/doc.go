// Package warm shows that a warm run does what a cold one does, with the real
// ansible-runner and Ansible of .venv: plays (testdata/plays) are run both ways, and
// their events, results, outcomes, exit codes, files and objects in an API server are
// compared (plays_test.go, sight_test.go), and what was started warm is what a play
// says. `make test` has those that are most telling, and the build tag long all. And it
// shows that runs are apart (state_test.go), what becomes of runs whose servers die,
// freeze, can't be reached or lack what they need (faults_test.go), of servers whose
// manager dies, and what is left of ten thousand forks (leaks_long_test.go). It has no
// code of its own.
package warm
