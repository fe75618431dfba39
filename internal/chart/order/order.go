// Package order has the protocol between the manager and chart-exec, the program that runs
// Helm's actions. The manager writes the order to a file. chart-exec writes records, as lines of
// JSON, to a descriptor of its own.
//
// A record counts only with the nonce of its order. The verdict of a run comes from its last record and
// its exit code; output of a chart, a hook or Helm cannot become a record.
//
// The package does not know Helm.
package order

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	strictjson "sigs.k8s.io/json"

	"github.com/ensign-operator/ensign/internal/chart/seal"
	"github.com/ensign-operator/ensign/internal/watches"
)

// Descriptor is the number of the descriptor to which chart-exec writes its records.
const Descriptor = 3

// CrashFile is the name of the file in chart-exec's temporary directory that is its standard error.
// The runtime writes the reason of a crash there, for example out of memory.
const CrashFile = "crash"

// Labels of the Secrets in which Helm stores releases, and of the objects of a release.
const (
	// DigestLabel holds the digest of the inputs of the revision, OwnerLabel the UID of the CR for
	// which it was made, and AttemptLabel the id of the attempt. SealLabel holds the manager's seal
	// on these and on the record without its state, and StateLabel the seal on the state.
	DigestLabel  = "ensign-digest"
	OwnerLabel   = "ensign-owner"
	AttemptLabel = "ensign-attempt"
	SealLabel    = "ensign-seal"
	StateLabel   = "ensign-state"
	// ChartLabel holds the name and version of the chart, on the objects of a release.
	ChartLabel = "helm.sdk.operatorframework.io/chart"
)

// Action is one of Helm's actions.
type Action string

// The actions. Reinstall removes the remains of an uninstallation, and installs. Uninstall keeps
// the history: the manager deletes it last. Render and Evaluate change nothing and need no cluster:
// chart-exec writes a File for each template of the chart, or a list with an Evaluated for each
// text of the order, to standard output. Preview changes nothing either, and writes a Rendered there:
// the output of the chart for a cluster. FetchChart writes lines for people there.
const (
	Install   Action = "install"
	Reinstall Action = "reinstall"
	Upgrade   Action = "upgrade"
	Uninstall Action = "uninstall"
	Render    Action = "render"
	Evaluate  Action = "evaluate"
	Preview   Action = "preview"
	// FetchChart saves the archive of a chart from elsewhere. The manager gives no such order.
	FetchChart Action = "fetch"
)

// Order is the input of chart-exec.
type Order struct {
	// Nonce is positive and unguessable.
	Nonce  int64  `json:"nonce"`
	Action Action `json:"action"`
	// Attempt is the id of the attempt. Revisions are the authentic ones of the release, the newest last,
	// with their states: Helm sees only these.
	Attempt   string     `json:"attempt"`
	Revisions []Revision `json:"revisions,omitempty"`
	// IfChanged skips an upgrade for which the chart renders the objects of the last revision.
	IfChanged bool `json:"ifChanged"`
	// TakeOver first replaces the records that do not count. Base are the names of the objects of a
	// release whose records are lost.
	TakeOver bool     `json:"takeOver"`
	Base     []Object `json:"base,omitempty"`
	// Seal says how revisions are sealed.
	Seal Seal `json:"seal"`
	// Chart is the absolute path of a chart's directory or archive.
	Chart     string         `json:"chart"`
	Name      string         `json:"name"`
	Namespace string         `json:"namespace"`
	Values    map[string]any `json:"values"`
	// Digest is that of the chart, the values and the overrides.
	Digest string `json:"digest"`
	// Templates says which text may be evaluated by the chart's tpl.
	Templates Templates `json:"templates"`
	// Texts are templates of the author of the watch, for Evaluate.
	Texts []string `json:"texts,omitempty"`
	// Revision is the number of the revision that Preview renders. The first one is an installation.
	Revision int `json:"revision,omitempty"`
	// Fetch is for FetchChart.
	Fetch Fetch `json:"fetch,omitzero"`

	Settings `json:"settings"`
}

// Fetch names the chart to fetch.
type Fetch struct {
	// Chart is its name in Repo, the URL of a repository; without one a URL of HTTP or OCI, or a name
	// below that of a repository which Helm knows.
	Chart string `json:"chart"`
	Repo  string `json:"repo,omitempty"`
	// Version is a version or a range of them; "" is the newest that is not a pre-release.
	Version string `json:"version,omitempty"`
	// PlainHTTP asks a registry without TLS.
	PlainHTTP bool `json:"plainHTTP,omitempty"`
	// To is the path of the archive.
	To string `json:"to"`
}

// Seal says for which CR revisions are sealed, and with which keys.
type Seal struct {
	Owner Owner     `json:"owner"`
	Keys  seal.Keys `json:"keys"`
}

// Owner is a CR. Namespace is "" for a cluster-scoped one.
type Owner struct {
	Group     string `json:"group"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
}

// Templates says which text a chart's tpl may evaluate.
type Templates struct {
	// All allows any text.
	All bool `json:"all"`
	// Trusted are texts beside the chart's own files whose templates may be evaluated.
	Trusted []string `json:"trusted"`
	// Untrusted are the texts and keys with templates that must not be evaluated.
	Untrusted []Text `json:"untrusted,omitempty"`
	// Secret is true if values come from Secrets: no message quotes text that reaches tpl.
	Secret bool `json:"secret,omitempty"`
}

// Text is a text or key of the values, and its path in them.
type Text struct {
	Path string `json:"path"`
	Text string `json:"text"`
	// OfObject is true if it comes from an object of valuesFrom, not from the CR's spec.
	OfObject bool `json:"ofObject,omitempty"`
}

// Refused names the object of a refusal before any change.
type Refused string

// The values of Refused: text of the CR's spec, or of an object of valuesFrom, that the chart gave
// to tpl, which did not evaluate it; and objects that the chart itself renders.
const (
	RefusedOfSpec   Refused = "spec"
	RefusedOfObject Refused = "object"
	RefusedOfChart  Refused = "chart"
)

// Settings are settings of Helm's actions.
type Settings struct {
	// MaxHistory is the number of revisions kept; 0 keeps all.
	MaxHistory int `json:"maxHistory"`
	// Wait waits until the objects are ready, or deleted.
	Wait bool `json:"wait"`
	// Timeout bounds each wait.
	Timeout time.Duration `json:"timeout"`
	// ApplyByClient applies objects by patches of the client, instead of server-side apply.
	ApplyByClient bool `json:"applyByClient"`
	// Adopt takes over objects that belong to no release.
	Adopt        bool `json:"adopt"`
	SkipCRDs     bool `json:"skipCRDs"`
	ReplaceCRDs  bool `json:"replaceCRDs"`
	DisableHooks bool `json:"disableHooks"`
	// Force replaces objects that cannot be changed, in an upgrade; RollbackForce in the
	// rollback after a failed one.
	Force         bool   `json:"force"`
	RollbackForce bool   `json:"rollbackForce"`
	Description   string `json:"description"`
	// DriftIgnore are fields that an upgrade leaves as they are, unless the chart changes them.
	DriftIgnore []watches.DriftIgnore `json:"driftIgnore,omitempty"`
}

// File is the output of a template.
type File struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// Rendered is the output of a chart for a revision.
type Rendered struct {
	// Manifests are those of two renderings: their differences are random.
	Manifests [2]string `json:"manifests"`
	// CRDs are those of the directory crds that the revision brings.
	CRDs string `json:"crds"`
	// Hooks are those that run with the revision, in their order.
	Hooks []Hook `json:"hooks"`
}

// Hook is a hook of a chart.
type Hook struct {
	// Event is Helm's, such as pre-upgrade. A hook of several events is there for each of them.
	Event string `json:"event"`
	// Name is the kind with namespace and name, for people.
	Name string `json:"name"`
}

// Evaluated is the result of a template of the order's Texts, or the reason why there is none.
type Evaluated struct {
	Text  string `json:"text"`
	Error string `json:"error"`
}

// Decode reads an order as the manager wrote it. Whole numbers of the values stay whole: a
// template would write a float of a million as 1e+06.
func Decode(text []byte) (o Order, err error) {
	if err := strictjson.UnmarshalCaseSensitivePreserveInts(text, &o); err != nil {
		return Order{}, fmt.Errorf("read the order: %w", err)
	}
	return o, nil
}

// Record is one line that chart-exec writes.
type Record struct {
	Nonce int64 `json:"nonce"`
	// Working is the current step of chart-exec; "" in the last record.
	Working string `json:"working,omitempty"`
	// Left is an object that chart-exec does not delete because it belongs to another release.
	Left string `json:"left,omitempty"`
	// Done is true in the last record. Error is "" on success.
	Done  bool   `json:"done,omitempty"`
	Error string `json:"error,omitempty"`
	// Refused is set in the last record if untrusted text, or the chart's own output, caused the
	// error: only the writer of that, or the author of the watch, can fix it.
	Refused Refused `json:"refused,omitempty"`
}

// maxLine bounds a record's line, and maxError the error in it, in bytes.
const (
	maxLine  = 256 << 10
	maxError = 16 << 10
)

// Write writes a record. An error's text is cut at 16 KiB.
func (r Record) Write(w io.Writer) error {
	if len(r.Error) > maxError {
		r.Error = r.Error[:maxError]
	}
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = w.Write(append(line, '\n'))
	return err
}

// Read calls handle with each record of the nonce, and returns the last one. It is nil if the
// records ended before.
func Read(r io.Reader, nonce int64, handle func(Record)) (last *Record, err error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var record Record
		if err := json.Unmarshal(lines.Bytes(), &record); err != nil || record.Nonce != nonce {
			continue // A line without the nonce proves nothing.
		}
		if record.Done && last == nil {
			last = &record
		}
		handle(record)
	}
	if err := lines.Err(); err != nil {
		_, drainErr := io.Copy(io.Discard, r) // The run must not wait for a reader.
		return last, errors.Join(fmt.Errorf("read the records of chart-exec: %w", err), drainErr)
	}
	return last, nil
}
