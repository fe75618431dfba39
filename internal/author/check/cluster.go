package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	kyaml "sigs.k8s.io/yaml"

	"github.com/ensign-operator/ensign/internal/author/report"
	"github.com/ensign-operator/ensign/internal/author/rights"
	"github.com/ensign-operator/ensign/internal/author/source"
)

// Cluster is a cluster that a project is compared with. Nothing in it is changed.
type Cluster struct {
	Config *rest.Config
	// As is the account that the operator will have; "" for that of Config.
	As string
	// Namespace is where the operator is deployed, "" for that of config/default.
	Namespace string
	// Namespaces are those that the operator watches; none for all.
	Namespaces []string
}

// cluster adds kinds and rights that the cluster lacks, and its refusal of the operator's pod. It
// also adds fields that resources in the cluster would lose.
func (p *Project) cluster(ctx context.Context, c Cluster) error {
	config := rest.CopyConfig(c.Config)
	config.QPS = -1 // The API server has priority and fairness.
	own, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("use the kubeconfig: %w", err)
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("use the kubeconfig: %w", err)
	}
	config.Impersonate.UserName = c.As
	account, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("use the kubeconfig: %w", err)
	}
	for _, u := range p.Units {
		if u.Finalizing {
			continue
		}
		if err := errors.Join(p.served(own, u), p.dropped(ctx, objects, u, c.Namespaces)); err != nil {
			return err
		}
	}
	return errors.Join(p.mayDo(ctx, account, c), p.accountsMayDo(ctx, c), p.podSecurity(ctx, own, c))
}

// served adds a kind that the cluster does not serve as the watch wants it.
func (p *Project) served(k kubernetes.Interface, u *Unit) error {
	at := source.Position{File: p.watchesFile, Line: u.Watch.Line, Column: 1}
	gvk := u.Watch.GVK
	groups, err := k.Discovery().ServerGroups()
	if err != nil {
		return fmt.Errorf("ask the cluster which kinds it serves: %w", err)
	}
	var versions []string
	for _, group := range groups.Groups {
		if group.Name != gvk.Group {
			continue
		}
		for _, version := range group.Versions {
			list, err := k.Discovery().ServerResourcesForGroupVersion(version.GroupVersion)
			if err != nil {
				return fmt.Errorf("ask the cluster which kinds it serves: %w", err)
			}
			for _, resource := range list.APIResources {
				if resource.Kind == gvk.Kind && !strings.Contains(resource.Name, "/") {
					versions = append(versions, version.Version)
					p.statusServed(u, list, resource.Name, version.Version, at)
				}
			}
		}
	}
	switch {
	case len(versions) == 0:
		p.add(finding{
			"not-served", report.Error, at, "the cluster does not serve the kind " + gvk.GroupKind().String(),
			"the manager looks for the kind again and again, and nothing runs", "install the CRD: make install",
		})
	case !slices.Contains(versions, gvk.Version):
		p.add(finding{
			"not-served", report.Error, at, fmt.Sprintf("the cluster serves %s in %s, and not in %s", gvk.GroupKind(), strings.Join(versions, ", "), gvk.Version),
			"the manager looks for the kind again and again, and nothing runs", "install the CRD of this project, or correct the version",
		})
	}
	return nil
}

func (p *Project) statusServed(u *Unit, list *metav1.APIResourceList, name, version string, at source.Position) {
	there := slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == name+"/status" })
	if version == u.Watch.GVK.Version && u.Watch.ManageStatus && !there {
		p.add(finding{
			"not-served", report.Warning, at, "the cluster serves " + u.Watch.GVK.Kind + " without a status subresource",
			"no outcome of a run is written anywhere but in the log", "install a CRD with subresources: {status: {}}",
		})
	}
}

// mayEither reports whether the account has the right of a need, or the one that does instead.
func mayEither(ctx context.Context, k kubernetes.Interface, need rights.Need, namespace string) (bool, error) {
	may, err := mayI(ctx, k, need.Right, namespace)
	if err == nil && !may && need.Or != (rights.Right{}) {
		return mayI(ctx, k, need.Or, namespace)
	}
	return may, err
}

// mayDo adds the rights that the project needs and the account does not have.
func (p *Project) mayDo(ctx context.Context, k kubernetes.Interface, c Cluster) error {
	namespaces := c.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{""}
	}
	who := "the account of the kubeconfig"
	if c.As != "" {
		who = c.As
	}
	type place struct {
		right     rights.Right
		namespace string
	}
	allowed := map[place]bool{}
	lacking, err := p.lacking(p.Needs().All, func(need rights.Need) (not []string, err error) {
		where := namespaces
		if need.Scope == rights.Lease {
			where = []string{cmp.Or(c.Namespace, p.deployedTo())}
		}
		for _, namespace := range where {
			key := place{need.Right, namespace}
			may, known := allowed[key]
			if !known {
				if may, err = mayEither(ctx, k, need, namespace); err != nil {
					return nil, err
				}
				allowed[key] = may
			}
			if !may {
				not = append(not, strings.TrimSuffix(need.Right.String()+" in "+namespace, " in "))
			}
		}
		return not, nil
	})
	for _, l := range lacking {
		p.lacks(l, "no-right", who+" may not: ", "; it is needed also at ", "install the roles of config/rbac, and bind them to the account; rbac prints what is needed")
	}
	return err
}

func mayI(ctx context.Context, k kubernetes.Interface, right rights.Right, namespace string) (bool, error) {
	resource, sub, _ := strings.Cut(right.Resource, "/")
	var asked authorizationv1.SelfSubjectAccessReviewSpec
	if resource == "" { // A path.
		asked.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: right.Resource, Verb: right.Verb}
	} else {
		asked.ResourceAttributes = &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: right.Verb, Group: right.Group, Resource: resource, Subresource: sub, Name: right.Name}
	}
	review := &authorizationv1.SelfSubjectAccessReview{Spec: asked}
	answer, err := k.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("ask the cluster for rights: %w", err)
	}
	return answer.Status.Allowed, nil
}

// podSecurity adds pods of config/manager that the namespace of the operator refuses. The API
// server is asked to create one, and to store nothing.
func (p *Project) podSecurity(ctx context.Context, k kubernetes.Interface, c Cluster) error {
	namespace := c.Namespace
	if namespace == "" {
		namespace = p.deployedTo()
	}
	paths, err := filepath.Glob(filepath.Join(p.options.Dir, "config", "manager", "*.yaml"))
	if err != nil || namespace == "" {
		return err
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("read the manifests: %w", err)
		}
		for document := range strings.SplitSeq("\n"+string(text), "\n---") {
			var d appsv1.Deployment
			if kyaml.Unmarshal([]byte(document), &d) != nil || d.Kind != "Deployment" {
				continue
			}
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: d.Name + "-", Labels: d.Spec.Template.Labels}, Spec: d.Spec.Template.Spec}
			pod.Spec.ServiceAccountName = "" // It may not be there yet.
			_, err := k.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			p.pod(source.Position{File: path, Line: 1, Column: 1}, namespace, err)
		}
	}
	return nil
}

// pod adds the API server's objections against the operator's pod.
func (p *Project) pod(at source.Position, namespace string, err error) {
	switch {
	case err == nil:
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "violates PodSecurity"):
		p.add(finding{
			"pod-security", report.Error, at, "the namespace " + namespace + " refuses the operator's pod: " + err.Error(),
			"no pod of the Deployment starts", "set what the message names in the pod's securityContext, or another level in the namespace's label pod-security.kubernetes.io/enforce",
		})
	default:
		p.add(finding{
			"pod-security", report.Info, at, "whether the namespace " + namespace + " takes the operator's pod is not known: " + err.Error(),
			"the Deployment may have no pod", "deploy it, and look at the Events of its ReplicaSet",
		})
	}
}

// deployedTo returns the namespace that config/default gives to all objects.
func (p *Project) deployedTo() string {
	var k struct {
		Namespace string `json:"namespace"`
	}
	text, err := os.ReadFile(filepath.Join(p.options.Dir, "config", "default", "kustomization.yaml"))
	if err != nil || kyaml.Unmarshal(text, &k) != nil {
		return ""
	}
	return k.Namespace
}
