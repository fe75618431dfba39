package harness

import "os"

// modeVariable says whether the runs of suites are warm: "true" or "false"; by the
// manager's default when it is not set.
const modeVariable = "ENSIGN_TEST_WARM"

// Warm reports whether runs of suites are warm. Those in Jobs never are.
func Warm() bool { return os.Getenv(modeVariable) != "false" && !InJobs() }

// Mode is the flag for it, if there has to be one.
func Mode() []string {
	if mode := os.Getenv(modeVariable); mode != "" {
		return []string{"--warm=" + mode}
	}
	return nil
}

// executorVariable says where runs of suites are executed: "job", or as everywhere where it is
// not set.
const executorVariable = "ENSIGN_TEST_EXECUTOR"

// InJobs reports whether runs of suites are executed by agents of Jobs.
func InJobs() bool { return os.Getenv(executorVariable) == "job" }
