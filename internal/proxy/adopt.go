package proxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"

	libhandler "github.com/operator-framework/operator-lib/handler"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"sigs.k8s.io/yaml"

	"github.com/ensign-operator/ensign/internal/access"
)

// maxObjectBytes is the API server's own limit for the body of a request that
// writes an object.
const maxObjectBytes = 3 << 20

type refusedError struct {
	code    int
	message string
}

func (e *refusedError) Error() string { return e.message }

// createsObject tells whether the request stores a new object that can have an
// owner.
func createsObject(info *apirequest.RequestInfo) bool {
	return info.IsResourceRequest && info.Verb == "create" && info.Subresource == "" && !isVirtual(info.APIGroup)
}

// isVirtual tells whether the group's kinds are questions: nothing is stored.
func isVirtual(group string) bool {
	return group == "authentication.k8s.io" || group == "authorization.k8s.io"
}

// adopt rewrites the body of a request that creates an object in namespace ("" for
// a cluster-scoped one), so that the object belongs to owner.
func adopt(w http.ResponseWriter, r *http.Request, owner access.Owner, namespace string) error {
	object, err := readObject(w, r)
	if err != nil {
		return err
	}
	child := &unstructured.Unstructured{Object: object}
	if err := setOwner(child, owner, namespace); err != nil {
		return fmt.Errorf("make %s the owner: %w", owner, err)
	}
	body, err := json.Marshal(child.Object)
	if err != nil {
		return fmt.Errorf("encode the object: %w", err)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.ContentLength = int64(len(body))
	r.TransferEncoding = nil
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Content-Length", strconv.Itoa(len(body)))
	return nil
}

// setOwner sets an owner reference where Kubernetes' garbage collector accepts
// one: from a cluster-scoped owner, or within one namespace. Elsewhere a
// reference would make it delete the child at once, and operator-lib's
// annotations stand in.
func setOwner(child *unstructured.Unstructured, owner access.Owner, namespace string) error {
	if owner.Namespace != "" && owner.Namespace != namespace {
		primary := &unstructured.Unstructured{}
		primary.SetGroupVersionKind(owner.GVK)
		primary.SetNamespace(owner.Namespace)
		primary.SetName(owner.Name)
		return libhandler.SetOwnerAnnotations(primary, child)
	}
	references := child.GetOwnerReferences()
	if slices.ContainsFunc(references, func(r metav1.OwnerReference) bool { return r.UID == owner.UID }) {
		return nil
	}
	child.SetOwnerReferences(append(references, metav1.OwnerReference{
		APIVersion: owner.GVK.GroupVersion().String(),
		Kind:       owner.GVK.Kind,
		Name:       owner.Name,
		UID:        owner.UID,
	}))
	return nil
}

func readObject(w http.ResponseWriter, r *http.Request) (map[string]any, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxObjectBytes))
	if err != nil {
		if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
			return nil, &refusedError{http.StatusRequestEntityTooLarge, fmt.Sprintf("the object is larger than %d bytes", maxObjectBytes)}
		}
		return nil, fmt.Errorf("read the object: %w", err)
	}
	if body, err = toJSON(body, r.Header.Get("Content-Type")); err != nil {
		return nil, err
	}
	// UseNumber leaves every number as the client wrote it.
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	object := map[string]any{}
	if err := decoder.Decode(&object); err != nil {
		return nil, fmt.Errorf("read the object as JSON: %w", err)
	}
	switch object["metadata"].(type) {
	case map[string]any:
	case nil:
		delete(object, "metadata")
	default:
		return nil, errors.New("the object's metadata is no mapping, so that it can have no owner")
	}
	return object, nil
}

func toJSON(body []byte, contentType string) ([]byte, error) {
	mediaType, _, err := mime.ParseMediaType(contentType)
	if err != nil && contentType != "" {
		return nil, fmt.Errorf("read the content type %q: %w", contentType, err)
	}
	switch mediaType {
	case "", "application/json":
		return body, nil
	case "application/yaml", "text/yaml":
		return yaml.YAMLToJSON(body)
	default:
		return nil, &refusedError{http.StatusUnsupportedMediaType, fmt.Sprintf("the API proxy adds an owner to what a run creates and reads JSON and YAML for that, not %q", mediaType)}
	}
}
