package wire

// Command is the command of the program manager that runs in the pod of a Job.
const Command = "run-agent"

// DefaultPort is the port where managers serve agents.
const DefaultPort = 8445

// Audience is the audience of the service account token with which an agent claims its run.
const Audience = "ensign.io/run"

// TokenFile and TerminationFile are where the pod of a Job has its token, and the file of its
// termination message. EnvTokenFile and EnvTerminationFile override them.
const (
	TokenFile       = "/var/run/secrets/ensign.io/token" //nolint:gosec // The name of a file.
	TerminationFile = "/dev/termination-log"
)

// The environment variables of an agent. Its run does not get them.
const (
	// EnvAddress has the managers' "host:port"; several are separated by commas. All addresses of
	// a host are tried.
	EnvAddress = "ENSIGN_RUN_ADDRESS"
	// EnvKey has the public key of the managers, as package identity writes it.
	EnvKey             = "ENSIGN_RUN_KEY"
	EnvTokenFile       = "ENSIGN_RUN_TOKEN_FILE"
	EnvTerminationFile = "ENSIGN_TERMINATION_LOG"
)

// The paths at which managers serve agents. The request for a run has the service account token as
// its bearer token, all others that of the session.
const (
	// ClaimPath takes a POST without a body, and responds with an Assignment.
	ClaimPath = "/v1/claim"
	// EventsPath takes a POST of Events, and responds with Wanted.
	EventsPath = "/v1/events"
	// ResultPath takes a POST of a Result.
	ResultPath = "/v1/result"
	// APIPath is followed by the path of a request to the API server.
	APIPath = "/v1/api"
	// MetricsPath takes a metric that a role posts.
	MetricsPath = "/v1/metrics"
)

// NotLeaderHeader is set in a response with status 503 by a manager that does not lead, or has not
// adopted the run yet. It has done nothing. Its value is the reason, for people.
const NotLeaderHeader = "Ensign-Not-Leader"

// The most bytes that a manager reads of a body, and the most events: an agent's body of several events has
// 1 MiB, and each has some hundred bytes.
const (
	MaxEventsBytes = 4 << 20
	MaxResultBytes = 1 << 20
	maxEvents      = 10_000
)
