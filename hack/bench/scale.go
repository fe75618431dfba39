package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/hack/bench/report"
	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/trivial"
)

// scaleTable is the table of one manager's scale.
const scaleTable = "scale"

var (
	trivialKind = benchKind("Trivial") //nolint:gochecknoglobals // As a constant.
	nothingKind = benchKind("Nothing") //nolint:gochecknoglobals // As a constant.
)

// completedAt is when a run ended, in a status as JSON.
var completedAt = regexp.MustCompile(`"completion":"[^"]*"`)

// multitude is very many CRs of one kind in a namespace of their own, and one manager.
type multitude struct {
	*session

	// column names the content in the table.
	column    string
	kind      schema.GroupKind
	namespace string
	crs       int
	// atOnce is how many of them are created, and changed, at once; the others get the status of one.
	atOnce  int
	options harness.Options
}

// measureScale measures one manager of very many CRs: of content that is a function of Go, which
// shows what the manager itself takes, and of a role that does nothing, whose runs are warm.
func measureScale(ctx context.Context, s *session) error {
	s.say("scale: booting a cluster; about 20 s")
	if err := s.boot(ctx, []schema.GroupKind{trivialKind, nothingKind}); err != nil {
		return err
	}
	n := s.settings.scale
	slots := strconv.Itoa(goalSlots)
	flags := []string{"--max-concurrent-runs=" + slots, "--max-concurrent-reconciles=" + slots}
	ofGo := multitude{session: s, column: "a function of Go", kind: trivialKind, namespace: "trivial", crs: n, atOnce: n}
	var err error
	if ofGo.options, err = trivial.As(s.options(ofGo.namespace, flags...)); err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	ofRole := multitude{session: s, column: "a warm role", kind: nothingKind, namespace: "nothing", crs: n, atOnce: min(n, s.settings.scaleRuns)}
	ofRole.options = s.options(ofRole.namespace, append(flags, "--watches-file=nothing.yaml", "--leader-election-namespace="+ofRole.namespace)...)
	ofRole.options.Env = []string{"ANSIBLE_GATHERING=explicit"} // As config/manager has it.
	for _, m := range []multitude{ofGo, ofRole} {
		m.options.Namespace = m.namespace
		if err := m.measure(ctx); err != nil {
			return fmt.Errorf("%s: %w", m.column, err)
		}
	}
	return nil
}

// measure measures one after the other: CRs that are new at once, a start before all of them, rest,
// and CRs that are changed at once.
func (m multitude) measure(ctx context.Context) error {
	m.session.title = fmt.Sprintf("%d custom resources on one manager, whose content is %s", m.crs, m.column)
	for _, stage := range []func(context.Context) error{m.arrive, m.fill, m.startAgain, m.rest, m.change, m.remains} {
		if err := stage(ctx); err != nil {
			return err
		}
	}
	return m.dismiss()
}

// show adds a row that is in the table too.
func (m multitude) show(row report.Row, samples ...float64) {
	row.Cell = m.cell(row.Name)
	m.add(row, samples...)
}

func (m multitude) cell(line string) report.Cell {
	return report.Cell{Table: scaleTable, Line: line, Column: m.column}
}

// arrive creates all CRs while the manager is there.
func (m multitude) arrive(ctx context.Context) error {
	err := m.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: m.namespace}})
	if err := errors.Join(err, m.start(ctx, m.options, m.kind.Kind)); err != nil {
		return err
	}
	m.say("scale: creating %d custom resources, whose content is %s; the first run of each", m.atOnce, m.column)
	return m.together(ctx, "created", func(ctx context.Context, name string) error { return m.client.Create(ctx, m.cr(name)) })
}

func (m multitude) cr(name string) *unstructured.Unstructured {
	return harness.Custom(m.kind, m.namespace, name, map[string]any{"greeting": "hello"})
}

// fill creates the other CRs while there is no manager, as a run that ends now would have left them: a
// run before its CR would prove nothing.
func (m multitude) fill(ctx context.Context) error {
	all := names("cr", m.crs)
	example := m.cr(all[0])
	if err := errors.Join(m.dismiss(), m.client.Get(ctx, client.ObjectKeyFromObject(example), example)); err != nil {
		return err
	}
	if m.atOnce < m.crs {
		m.say("scale: creating %d more, with the status of a run", m.crs-m.atOnce)
	}
	return each(ctx, all[m.atOnce:], func(ctx context.Context, name string) error {
		cr := m.cr(name)
		if err := m.client.Create(ctx, cr); err != nil {
			return err
		}
		text, err := json.Marshal(example.Object["status"])
		if err != nil {
			return err
		}
		now := time.Now().UTC().Format(`"completion":"2006-01-02T15:04:05.999999+00:00"`)
		patch := fmt.Appendf(nil, `{"status":%s}`, completedAt.ReplaceAll(text, []byte(now)))
		return m.client.Status().Patch(ctx, cr, client.RawPatch(types.MergePatchType, patch))
	})
}

// change changes CRs at once.
func (m multitude) change(ctx context.Context) error {
	m.say("scale: changing %d of them", m.atOnce)
	return m.together(ctx, "changed", func(ctx context.Context, name string) error {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"greeting":"hello again"}}`))
		return m.client.Patch(ctx, harness.Custom(m.kind, m.namespace, name, nil), patch)
	})
}

// together does something with CRs at once, and measures until the last one's status says that a run for
// it has succeeded.
func (m multitude) together(ctx context.Context, what string, do func(context.Context, string) error) error {
	before, err := m.sample(ctx)
	if err != nil {
		return err
	}
	began, peak := time.Now(), 0.0
	end := harness.Every(time.Second, func() { peak = max(peak, treeMemory(m.manager.PID(), "")) })
	err = each(ctx, names("cr", m.atOnce), do)
	if err == nil {
		m.say("scale: … after %.0f s all are %s", time.Since(began).Seconds(), what)
		err = m.upToDate(ctx)
	}
	took := time.Since(began)
	end()
	after, sampleErr := m.sample(ctx)
	if err := errors.Join(err, sampleErr); err != nil {
		return err
	}
	n := float64(m.atOnce)
	m.show(report.Row{Name: what + " at once, until the last result", Unit: "s", Note: plural(m.atOnce, "resource")}, took.Seconds())
	m.show(report.Row{Name: "… of each second", Unit: "resources"}, n/took.Seconds())
	m.show(report.Row{Name: "… CPU of each", Unit: "ms", Note: "of the manager and all its processes"}, milliseconds(after.cpu-before.cpu)/n)
	m.show(report.Row{Name: "… requests of the manager for each", Goal: report.AtMost(7)}, (after.requests-before.requests)/n)
	m.show(report.Row{Name: "… memory of all (PSS), peak", Unit: "MiB", Note: "sampled each second"}, peak)
	if warm := after.warm - before.warm; warm > 0 {
		m.show(report.Row{Name: "… warm share", Unit: "%"}, 100*warm/(after.runs-before.runs))
	}
	return nil
}

// startAgain measures the start of a manager before all CRs, which have nothing to do.
func (m multitude) startAgain(ctx context.Context) error {
	m.say("scale: starting a manager before all of them")
	began := time.Now()
	if err := m.start(ctx, m.options); err != nil {
		return err
	}
	err := m.until(ctx, "all resources have been looked at", 100*time.Millisecond, func(ctx context.Context) (bool, error) {
		now, err := m.sample(ctx)
		if err != nil { // The endpoint is not there from the beginning.
			return false, nil //nolint:nilerr // If it never comes, the session ends with the manager.
		}
		return now.reconciled >= float64(m.crs), nil
	})
	took := time.Since(began)
	now, sampleErr := m.sample(ctx)
	if err := errors.Join(err, sampleErr); err != nil {
		return err
	}
	if now.runs > 0 {
		return fmt.Errorf("%.0f runs began after a restart, before which all had succeeded", now.runs)
	}
	m.show(report.Row{Name: "from a start until all are known to be up to date", Unit: "s"}, took.Seconds())
	m.show(report.Row{Name: "… CPU", Unit: "s"}, now.cpu.Seconds())
	m.show(report.Row{Name: "… requests for each", Goal: report.AtMost(1.25), Note: "reads: each resource is read once"}, now.requests/float64(m.crs))
	return m.peak("… the most memory (RSS) until then")
}

// rest measures a period without a change.
func (m multitude) rest(ctx context.Context) error {
	m.say("scale: at rest, for %s", m.settings.rest)
	const name = "at rest, memory of the manager (RSS)"
	if err := m.idle(ctx, nil, report.Row{Name: name, Cell: m.cell(name)}); err != nil {
		return err
	}
	before, err := m.sample(ctx)
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(m.settings.rest): // The rest is measured.
	}
	after, err := m.sample(ctx)
	if err != nil {
		return err
	}
	m.show(report.Row{Name: "… memory of its servers for warm runs (PSS)", Unit: "MiB"}, treeMemory(m.manager.PID(), "/serve.py "))
	minutes := m.settings.rest.Minutes()
	m.show(report.Row{Name: "… CPU in a minute", Unit: "ms"}, milliseconds(after.cpu-before.cpu)/minutes)
	m.show(report.Row{Name: "… requests in a minute", Note: "of the manager to the API server"}, (after.requests-before.requests)/minutes)
	return nil
}

// remains measures the data outside of the manager's memory.
func (m multitude) remains(ctx context.Context) error {
	objects := 0.0
	for _, kind := range []schema.GroupVersionKind{
		corev1.SchemeGroupVersion.WithKind("Event"), corev1.SchemeGroupVersion.WithKind("ConfigMap"),
		corev1.SchemeGroupVersion.WithKind("Secret"), coordinationv1.SchemeGroupVersion.WithKind("Lease"),
	} {
		one := &metav1.PartialObjectMetadataList{} // And the number of the others.
		one.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := m.client.List(ctx, one, client.InNamespace(m.namespace), client.Limit(1)); err != nil {
			return fmt.Errorf("count %ss: %w", kind.Kind, err)
		}
		objects += float64(len(one.Items)) + float64(ptr.Deref(one.RemainingItemCount, 0))
	}
	files, bytes, err := sizeOf(m.manager.RunDir())
	n := float64(m.crs)
	m.show(report.Row{Name: "objects in etcd beside each resource", Goal: report.AtMost(1.25), Note: "Events, which Kubernetes deletes after an hour, and others in the namespace of the resources"}, objects/n)
	m.show(report.Row{Name: "run directory: files of each resource"}, files/n)
	m.show(report.Row{Name: "run directory: size of each resource", Unit: "KiB"}, bytes/1024/n)
	return errors.Join(err, m.peak("the most memory (RSS) that the manager ever had"))
}
