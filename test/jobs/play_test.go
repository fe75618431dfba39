package jobs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/ensign-operator/ensign/test/harness/script"
)

// journalVariable names the journal of runs.
const journalVariable = "JOBS_JOURNAL"

// sign is a line of the journal: a run of a CR has begun, lives, or ends.
type sign struct {
	At  time.Time `json:"at"`
	UID string    `json:"uid"`
	CR  string    `json:"cr"`
	Run string    `json:"run"`
	// Generation is the CR's that the run works on.
	Generation int64  `json:"generation"`
	Is         string `json:"is"`
}

// A run that is told to end leaves no sign that it ends.
const (
	begins = "begins"
	lives  = "lives"
	ends   = "ends"
)

// play is a run that takes spec.seconds, or as much longer as it needs to show a task for each tenth of
// one. If spec.quick, it shows a task each 5 ms. Tasks have spec.kilobytes of output. At its end it writes a ConfigMap if
// spec.writes, and fails if spec.fails. It ends at TERM.
func play(r *script.Run) (int, error) {
	content, err := r.Resource()
	if err != nil {
		return 0, err
	}
	cr := &unstructured.Unstructured{Object: content}
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	number := func(name string) float64 {
		value, _, _ := unstructured.NestedFieldNoCopy(content, "spec", name)
		n, _ := value.(float64)
		return n
	}
	generation, _, _ := unstructured.NestedFieldNoCopy(content, "metadata", "generation")
	worksOn, _ := generation.(float64)
	tell := func(is string) error {
		return sign{At: time.Now(), UID: string(cr.GetUID()), CR: cr.GetName(), Run: r.Ident, Generation: int64(worksOn), Is: is}.write(os.Getenv(journalVariable))
	}
	if err := tell(begins); err != nil {
		return 0, err
	}
	text := strings.Repeat("x", int(number("kilobytes"))<<10)
	pause, tasks := 100*time.Millisecond, int(10*number("seconds"))
	if quick, _, _ := unstructured.NestedBool(content, "spec", "quick"); quick {
		pause, tasks = 5*time.Millisecond, 0
	}
	end := time.Now().Add(time.Duration(number("seconds") * float64(time.Second)))
	for task := 0; ; task++ {
		name := fmt.Sprintf("task %d", task)
		r.Event("playbook_on_task_start", map[string]any{"task": name, "play": "all"})
		r.Event("runner_on_ok", map[string]any{"task": name, "play": "all", "host": "localhost", "res": map[string]any{"msg": fmt.Sprintf("%s of %s", name, r.Ident), "text": text}})
		if time.Now().After(end) && task >= tasks { // Tests count on them on a busy machine too.
			break
		}
		select {
		case <-term:
			return 1, errors.New("told to end")
		case <-time.After(pause):
		}
		if err := tell(lives); err != nil {
			return 0, err
		}
	}
	if writes, _, _ := unstructured.NestedBool(content, "spec", "writes"); writes {
		if err := write(cr, r.Ident); err != nil {
			return 1, err
		}
	}
	if fails, _, _ := unstructured.NestedBool(content, "spec", "fails"); fails {
		r.Event("runner_on_failed", map[string]any{"task": "the last", "play": "all", "host": "localhost", "res": map[string]any{"msg": "this was asked for"}})
		r.Stats(1, 1)
		return 2, tell(ends)
	}
	r.Stats(1, 0)
	return 0, tell(ends)
}

// write writes the run's ID to the CR's ConfigMap through the API that the run has.
func write(cr *unstructured.Unstructured, run string) error {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	config.ContentType = "application/json" // The proxy reads what it gives an owner.
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	maps := client.CoreV1().ConfigMaps(cr.GetNamespace())
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	patch := fmt.Appendf(nil, `{"data": {"run": %q}}`, run)
	if _, err = maps.Patch(ctx, cr.GetName(), types.MergePatchType, patch, metav1.PatchOptions{}); err == nil {
		return nil
	}
	_, err = maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: cr.GetName()}, Data: map[string]string{"run": run}}, metav1.CreateOptions{})
	return err
}

func (s sign) write(path string) error {
	line, err := json.Marshal(s)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(append(line, '\n'))
	return errors.Join(err, file.Close())
}

// signs reads the journal.
func signs() (all []sign, err error) {
	text, err := os.ReadFile(journal)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	for line := range bytes.Lines(text) {
		var s sign
		if err := json.Unmarshal(line, &s); err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, err
}

// overlaps returns the CRs of which two runs lived at once.
func overlaps(all []sign) (found []string) {
	type span struct{ from, to time.Time }
	runs := map[string]map[string]*span{}
	for _, s := range all {
		if runs[s.UID] == nil {
			runs[s.UID] = map[string]*span{}
		}
		if runs[s.UID][s.Run] == nil {
			runs[s.UID][s.Run] = &span{from: s.At}
		}
		runs[s.UID][s.Run].to = s.At
	}
	for uid, spans := range runs {
		for one, a := range spans {
			for other, b := range spans {
				if one < other && a.from.Before(b.to) && b.from.Before(a.to) {
					found = append(found, fmt.Sprintf("%s: %s and %s", uid, one, other))
				}
			}
		}
	}
	return found
}
