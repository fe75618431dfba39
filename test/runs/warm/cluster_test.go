package warm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"

	"github.com/ensign-operator/ensign/test/controlplane"
)

// kept are the kinds whose objects plays make.
const kept = "configmaps,secrets,services,serviceaccounts,statefulsets,deployments,jobs,roles,rolebindings,persistentvolumeclaims"

// cluster makes the namespace for a run of a play that needs one, and gives the
// kubeconfig.
func (b *counted) cluster(p play, namespace string) []byte {
	b.t.Helper()
	if !p.cluster {
		return []byte("{}")
	}
	if b.api == nil {
		b.api = controlplane.ForTest(b.whole, controlplane.Options{})
	}
	b.kubectl("create", "namespace", namespace)
	kubeconfig, err := os.ReadFile(b.api.Kubeconfig)
	if err != nil {
		b.t.Fatal(err)
	}
	return kubeconfig
}

// objects are those of the namespace, without what the API server and controllers give
// each anew.
func (b *counted) objects(p play, namespace string) []string {
	b.t.Helper()
	if !p.cluster {
		return nil
	}
	var list struct {
		Items []map[string]any `json:"items"`
	}
	if err := json.Unmarshal(b.kubectl("get", kept, "--namespace", namespace, "--output", "json", "--show-managed-fields"), &list); err != nil {
		b.t.Fatal(err)
	}
	var found []string
	for _, object := range list.Items {
		if name := fmt.Sprint(object["kind"], " ", metadata(object)["name"]); name != "ConfigMap kube-root-ca.crt" && name != "ServiceAccount default" {
			found = append(found, b.object(object))
		}
	}
	return found
}

// object is what plays have made of an object. What controllers do comes when it comes.
func (b *counted) object(object map[string]any) string {
	b.t.Helper()
	meta := metadata(object)
	for _, name := range []string{"uid", "resourceVersion", "creationTimestamp"} {
		delete(meta, name)
	}
	fields, _ := meta["managedFields"].([]any)
	meta["managedFields"] = slices.DeleteFunc(fields, func(field any) bool {
		manager, _ := field.(map[string]any)
		return manager["manager"] == "kube-controller-manager"
	})
	annotations, _ := meta["annotations"].(map[string]any)
	delete(annotations, "deployment.kubernetes.io/revision")
	delete(object, "status")
	spec, _ := object["spec"].(map[string]any)
	delete(spec, "clusterIP")
	delete(spec, "clusterIPs")
	content, err := json.Marshal(object)
	if err != nil {
		b.t.Fatal(err)
	}
	return steady(string(content))
}

func metadata(object map[string]any) map[string]any {
	meta, _ := object["metadata"].(map[string]any)
	return meta
}

func (b *counted) kubectl(args ...string) []byte {
	b.t.Helper()
	var out, complaint bytes.Buffer
	cmd := exec.Command(b.api.Kubectl, append([]string{"--kubeconfig", b.api.Kubeconfig}, args...)...)
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := cmd.Run(); err != nil {
		b.t.Fatal(fmt.Errorf("kubectl %q: %w: %s", args, err, &complaint))
	}
	return out.Bytes()
}
