package watches

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	strictjson "sigs.k8s.io/json"
)

// OwnPrefix begins the labels and annotations that the manager itself sets at Jobs.
const OwnPrefix = "ensign.io/"

// The executors of runs.
const (
	executorLocal = "local"
	executorJob   = "job"
)

// Job says how the Jobs look in which the runs of a watch execute.
type Job struct {
	// PodTemplate is merged strategically over the manager's own pod. It has the fields of a
	// corev1.PodTemplateSpec; nil: there is nothing to merge.
	PodTemplate map[string]any `json:",omitempty"`
	// Labels and Annotations are those of the Job itself.
	Labels      map[string]string `json:"-"`
	Annotations map[string]string `json:"-"`
}

// rawJob holds the fields of a watch that say where its runs execute.
type rawJob struct {
	Job
	executor textField
}

func (p *parser) job(d *rawWatch) fieldParser {
	j := &d.job
	return p.mapping("job", map[string]fieldParser{
		"podTemplate": p.podTemplate(&j.PodTemplate),
		"labels":      p.objectMeta(&j.Labels, metav1validation.ValidateLabels),
		"annotations": p.objectMeta(&j.Annotations, apivalidation.ValidateAnnotations),
	})
}

// podTemplate returns the parser of a template of pods. A field that the API server would drop in
// silence, such as a misspelled one, is a fault.
func (p *parser) podTemplate(into *map[string]any) fieldParser {
	return func(name string, n *yaml.Node) {
		var template map[string]any
		before := len(p.faults)
		p.vars(&template)(name, n)
		if len(p.faults) > before || template == nil {
			return
		}
		text, err := json.Marshal(template)
		if err != nil {
			p.addFault(n.Line, "%s: %v", name, err)
			return
		}
		var pod corev1.PodTemplateSpec
		unknown, err := strictjson.UnmarshalStrict(text, &pod)
		for _, fault := range append(unknown, err) {
			if fault != nil {
				p.addFault(n.Line, "%s: %v; write the fields of a PodTemplateSpec, as spec.template of a Job has them", name, fault)
			}
		}
		p.podMeta(name, n.Line, pod.ObjectMeta)
		*into = template
	}
}

// podMeta adds faults for labels and annotations with which the API server would refuse each Job, and for
// labels that are the operator's own.
func (p *parser) podMeta(name string, line int, meta metav1.ObjectMeta) {
	at, labelsOfJobs := field.NewPath(name, "metadata"), []string{batchv1.JobNameLabel, batchv1.ControllerUidLabel, "job-name", "controller-uid"}
	for _, fault := range append(metav1validation.ValidateLabels(meta.Labels, at.Child("labels")), apivalidation.ValidateAnnotations(meta.Annotations, at.Child("annotations"))...) {
		p.addFault(line, "%v", fault)
	}
	for _, label := range slices.Sorted(maps.Keys(meta.Labels)) {
		switch {
		case strings.HasPrefix(label, OwnPrefix):
			p.addFault(line, "%s: the label %q is not allowed, because names that begin with %s are the operator's own", name, label, OwnPrefix)
		case slices.Contains(labelsOfJobs, label):
			p.addFault(line, "%s: the label %q is not allowed, because Kubernetes sets it itself at the pods of a Job", name, label)
		}
	}
}

// objectMeta returns the parser of labels or annotations, which validate checks.
func (p *parser) objectMeta(into *map[string]string, validate func(map[string]string, *field.Path) field.ErrorList) fieldParser {
	return func(name string, n *yaml.Node) {
		m := followAlias(n)
		if m.Kind != yaml.MappingNode {
			p.invalidValue(name, n, "a mapping of names to texts")
			return
		}
		all := map[string]string{}
		for _, f := range p.mappingFields(m) {
			var value textField
			p.text(&value)(name+"."+f.key, f.value)
			all[f.key] = value.text
			if strings.HasPrefix(f.key, OwnPrefix) {
				p.addFault(f.line, "%s: %q is not allowed, because names that begin with %s are the operator's own", name, f.key, OwnPrefix)
			}
		}
		for _, fault := range validate(all, field.NewPath("job", name)) {
			p.addFault(n.Line, "%v", fault)
		}
		*into = all
	}
}

// completeJob sets where the runs of the watch execute.
func (p *parser) completeJob(d *rawWatch) {
	line := d.lines["job"]
	switch {
	case d.job.executor.text == executorJob:
		d.Job = &d.job.Job
	case line != 0 && !d.job.executor.reported:
		p.addFault(line, "job: the runs of this watch execute in the manager; write executor: %s too, or remove job", executorJob)
	}
}

// InJobs reports whether runs of any of the watches execute in Jobs.
func InJobs(list []Watch) bool {
	return slices.ContainsFunc(list, func(w Watch) bool { return w.Job != nil })
}
