//go:build node

package node

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
)

// keepsEtcdConsistent has ten clients write and read while the cluster is given all that it is to
// survive, and then judges what they were told: there must be one order in which it all happened,
// so that no acknowledged write was lost and no read went back.
func keepsEtcdConsistent(ctx context.Context) {
	for round := range *etcdRounds {
		By(fmt.Sprintf("round %d of %d", round+1, *etcdRounds))
		load := startLoad(ctx, 10)
		end := time.Now().Add(*etcdLoad)
		for turn := 0; turn == 0 || time.Now().Before(end); turn++ {
			disturb(ctx, load)
		}
		load.judge()
	}
}

// disturb lets one thing after the other happen to the cluster. Each has to let writes through.
func disturb(ctx context.Context, load *load) {
	version := newerEtcd
	if etcdField(ctx, etcdName, "status", "currentVersion") == newerEtcd {
		version = olderEtcd
	}
	for _, what := range []struct {
		name string
		do   func()
	}{
		{"a pod is killed, and comes back with its data", func() {
			kubectl(ctx, "delete", "pod", etcdName+"-1", "--grace-period=0", "--force")
		}},
		{"a member is lost with its volume, and replaced", func() { loseVolumes(ctx, etcdName+"-2") }},
		{"all members move to another version, while the operator is killed", func() {
			setEtcd(ctx, `{"version":"`+version+`"}`)
			Eventually(ctx, func() string { return etcdField(ctx, etcdName, "status", "phase") }).Should(Equal("Upgrading"))
			kubectl(ctx, "delete", "pod", "--namespace="+etcdSpace, "--selector=app.kubernetes.io/component=manager", "--grace-period=0", "--force")
		}},
		{"it grows to five", func() { setEtcd(ctx, `{"size":5}`) }},
		{"it shrinks to three", func() { setEtcd(ctx, `{"size":3}`) }},
	} {
		By(what.name)
		before := load.writes.Load()
		what.do()
		// What was seen before it happened does not count.
		kubectl(ctx, "annotate", "etcdcluster", etcdName, "--overwrite", requested+"="+time.Now().Format(time.RFC3339Nano))
		settled(ctx)
		Expect(load.writes.Load()).To(BeNumerically(">", before), "no write was acknowledged meanwhile")
	}
	Expect(etcdField(ctx, etcdName, "status", "currentVersion")).To(Equal(version))
}

// settled waits until the cluster is ready, with as many members as it is to have, all of them ready.
func settled(ctx context.Context) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		g.Expect(kubectl(ctx, "get", "statefulset", etcdName, "--output=jsonpath={.status.readyReplicas}")).
			To(Equal(kubectl(ctx, "get", "etcdcluster", etcdName, "--output=jsonpath={.spec.size}")))
		g.Expect(strings.Fields(kubectl(ctx, "get", "etcdcluster", etcdName, `--output=jsonpath={.status.phase} {.status.reason}`))).To(HaveExactElements(
			"Running", "all", "is", "as", "it", "should", "be"))
	}, 6*time.Minute).Should(Succeed())
	etcdIsReady(ctx, etcdName)
}

// load is what clients did and were told.
type load struct {
	stop    context.CancelFunc
	clients sync.WaitGroup
	began   time.Time
	writes  atomic.Int64

	mutex   sync.Mutex
	history []porcupine.Operation
}

// A register is written and read.
type request struct {
	key, value string
	write      bool
}

func startLoad(ctx context.Context, clients int) *load {
	GinkgoHelper()
	unlimited := rest.CopyConfig(config)
	transport, err := rest.HTTPClientFor(unlimited)
	Expect(err).NotTo(HaveOccurred())
	ctx, stop := context.WithCancel(ctx)
	l := &load{stop: stop, began: time.Now()}
	for client := range clients {
		l.clients.Go(func() {
			for turn := 0; ctx.Err() == nil; turn++ {
				// A key is in use for some seconds: so the history of each one is short, and soon judged.
				key := fmt.Sprintf("load/%d/%d/%d", l.began.Unix(), time.Since(l.began)/(5*time.Second), turn%3)
				l.record(ctx, transport, client, request{key: key, value: fmt.Sprintf("%d-%d", client, turn), write: (client+turn)%2 == 0})
				wait(ctx, 50*time.Millisecond) // The machine is to have time for the members, too.
			}
		})
	}
	return l
}

func wait(ctx context.Context, pause time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(pause):
	}
}

// record does one request and notes it. A read that failed tells nothing. A write that failed may have
// happened, then or at any later time.
func (l *load) record(ctx context.Context, transport *http.Client, client int, r request) {
	operation := porcupine.Operation{ClientId: client, Input: r, Call: time.Since(l.began).Nanoseconds()}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	value, err := r.send(ctx, transport)
	operation.Output, operation.Return = value, time.Since(l.began).Nanoseconds()
	switch {
	case err != nil && !r.write:
		return
	case err != nil:
		operation.Return = math.MaxInt64
	case r.write:
		l.writes.Add(1)
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.history = append(l.history, operation)
}

// send goes to etcd's JSON gateway, through the API server, to any member that is ready.
func (r request) send(ctx context.Context, transport *http.Client) (string, error) {
	encode := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	path, body := "range", map[string]string{"key": encode(r.key)}
	if r.write {
		path, body = "put", map[string]string{"key": encode(r.key), "value": encode(r.value)}
	}
	text, err := json.Marshal(body)
	if err != nil {
		return "", err
	}
	url := fmt.Sprintf("%s/api/v1/namespaces/%s/services/%s-client:2379/proxy/v3/kv/%s", config.Host, namespace, etcdName, path)
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(text))
	if err != nil {
		return "", err
	}
	response, err := transport.Do(post)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	var answer struct {
		Header struct {
			Revision string `json:"revision"`
		} `json:"header"`
		Kvs []struct {
			Value []byte `json:"value"`
		} `json:"kvs"`
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return "", err
	}
	if response.StatusCode != http.StatusOK || answer.Header.Revision == "" {
		return "", fmt.Errorf("status %d", response.StatusCode)
	}
	if r.write || len(answer.Kvs) == 0 {
		return "", nil
	}
	return string(answer.Kvs[0].Value), nil
}

// judge ends the load and looks for an order in which each key's reads saw the last write.
func (l *load) judge() {
	GinkgoHelper()
	l.stop()
	l.clients.Wait()
	unknown := 0
	for _, operation := range l.history {
		if operation.Return == math.MaxInt64 {
			unknown++
		}
	}
	AddReportEntry("load", fmt.Sprintf("%d operations, %d writes acknowledged, %d of unknown result, in %s",
		len(l.history), l.writes.Load(), unknown, time.Since(l.began).Round(time.Second)))
	Expect(porcupine.CheckOperationsTimeout(registers, l.history, 5*time.Minute)).To(Equal(porcupine.Ok))
}

var registers = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		keys := map[string][]porcupine.Operation{}
		for _, operation := range history {
			key := operation.Input.(request).key
			keys[key] = append(keys[key], operation)
		}
		parts := make([][]porcupine.Operation, 0, len(keys))
		for _, part := range keys {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() any { return "" },
	Step: func(state, input, output any) (bool, any) {
		r := input.(request)
		if r.write {
			return true, r.value
		}
		return output == state, state
	},
}

// TestWhatIsJudged shows that what must not happen is seen.
func TestWhatIsJudged(t *testing.T) {
	write := func(value string, call, end int64) porcupine.Operation {
		return porcupine.Operation{Input: request{key: "k", value: value, write: true}, Output: "", Call: call, Return: end}
	}
	read := func(value string, call, end int64) porcupine.Operation {
		return porcupine.Operation{Input: request{key: "k"}, Output: value, Call: call, Return: end}
	}
	for name, history := range map[string][]porcupine.Operation{
		"an acknowledged write is lost":   {write("a", 1, 2), write("b", 3, 4), read("a", 5, 6)},
		"a read goes back":                {write("a", 1, 2), write("b", 3, math.MaxInt64), read("b", 5, 6), read("a", 7, 8)},
		"what nobody has written is read": {write("a", 1, 2), read("c", 3, 4)},
	} {
		if porcupine.CheckOperations(registers, history) {
			t.Errorf("%s, and it is not seen", name)
		}
	}
	if !porcupine.CheckOperations(registers, []porcupine.Operation{write("a", 1, 2), write("b", 3, math.MaxInt64), read("a", 5, 6), read("b", 7, 8)}) {
		t.Error("a write of unknown result may happen later")
	}
}
