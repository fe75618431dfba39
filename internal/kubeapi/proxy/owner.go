package proxy

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ensign-operator/ensign/internal/kubeapi/proxy/ownership"
)

const (
	// maxObjectBytes is the API server's limit for the body of a request that writes an object.
	maxObjectBytes = 3 << 20
	// maxDrainBytes is how much more of a larger body the proxy reads: a client whose connection
	// closes while it sends does not read the response.
	maxDrainBytes = 16 << 20
)

// addOwner adds the owner, and the labels of the session, to the object that the request
// writes. It looks up the live object if the decision needs that. If the look-up fails, the request is refused.
func (p *Proxy) addOwner(w http.ResponseWriter, q *request) error {
	ok, err := p.canHaveOwner(q)
	if err != nil || !ok {
		return err
	}
	body, err := p.readBody(w, q.Request)
	if err != nil {
		return err
	}
	contentType := q.Header.Get("Content-Type")
	write, err := ownership.Parse(q.info.Verb, contentType, body)
	if err != nil {
		return refusalOfInvalidBody(err)
	}
	if q.URL.Query().Get("fieldValidation") == metav1.FieldValidationStrict {
		if err := write.Duplicates(); err != nil {
			return refusal(http.StatusBadRequest, "strict decoding error: %v", err)
		}
	}
	target, err := p.target(q, write)
	if err != nil {
		return err
	}
	live, err := p.lookUp(q, write.Needs(target))
	switch {
	case apierrors.IsMethodNotSupported(err):
		// An object that the API cannot return is not stored, and has no owner.
	case err != nil && write.Needs(target) == ownership.WantsMetadata:
		// The write leaves the link as it is.
	case err != nil:
		return refusalOfAPIError(fmt.Errorf("look up the object's owner before it is written: %w", err))
	default:
		live = p.prepare(q, write.Before(target, live), live)
		if body, contentType, err = write.AddOwner(target, live); err != nil {
			return refusalOfInvalidBody(err)
		}
	}
	q.replaceBody(body, contentType)
	return nil
}

// target returns the owner and the labels that the write is to give its object.
func (p *Proxy) target(q *request, write *ownership.Write) (ownership.Target, error) {
	labels, err := p.labels(q)
	if err != nil {
		return ownership.Target{}, err
	}
	target := ownership.Target{Owner: q.session.Owner, Namespace: q.namespace(), Name: q.info.Name, Labels: labels, LabelsOnly: !p.injectOwner}
	target.MarkedOnly = len(labels) > 0 && q.info.APIGroup == "apiextensions.k8s.io" && q.info.Resource == "customresourcedefinitions"
	if q.session.Release {
		name := cmp.Or(q.info.Name, write.Name())
		target.Annotated = q.session.Deleting || q.info.APIGroup == "" && q.info.Resource == "secrets" && ownership.IsRecord(name)
	}
	return target, nil
}

// lookUp returns the parts of the live object that are needed.
func (p *Proxy) lookUp(q *request, needs ownership.Needs) (live map[string]any, err error) {
	switch {
	case needs == ownership.NeedsObject:
		live, err = p.upstream.Object(q.Context(), q.resource(), q.namespace(), q.info.Name)
	case needs == ownership.NeedsMetadata, needs == ownership.WantsMetadata && q.info.Subresource == "":
		live, err = p.upstream.Metadata(q.Context(), q.resource(), q.namespace(), q.info.Name)
	}
	return live, err
}

// prepare sends the patch that has to precede the write, if there is one, and returns the object's
// metadata after that. Where another account is to write, the API server has not judged yet
// whether it may.
func (p *Proxy) prepare(q *request, patch []byte, live map[string]any) map[string]any {
	if patch == nil || q.URL.Query().Has("dryRun") || q.info.Subresource != "" || q.impersonates() || p.checkFence(nil, q) != nil {
		return live
	}
	patched, err := p.upstream.PatchMetadata(q.Context(), q.resource(), q.namespace(), q.info.Name, patch)
	if err != nil {
		p.log.V(1).Info("could not change an owner reference before an apply", "path", q.URL.Path, "error", err.Error())
		return live // The apply itself may still do it.
	}
	return patched
}

// canHaveOwner reports whether the request writes an object that can have an owner.
func (p *Proxy) canHaveOwner(q *request) (bool, error) {
	if !p.injectOwner && len(q.session.Labels) == 0 || !q.info.IsResourceRequest || isReview(q.info.APIGroup) {
		return false, nil
	}
	switch whole := q.info.Subresource == ""; {
	case q.info.Verb == "update", q.info.Verb == "patch":
		// For Kubernetes' own kinds, a write of status changes metadata too.
		return q.info.Name != "" && (whole || q.info.Subresource == "status"), nil
	case q.info.Verb == "create" && whole:
		kind, err := p.upstream.Kind(q.Context(), q.resource())
		if err != nil {
			return false, refusalOfAPIError(err)
		}
		return !kind.Virtual, nil
	default:
		return false, nil
	}
}

// labels returns the labels that the object of the request gets: none where it is the owner itself,
// or where the write is of its status.
func (p *Proxy) labels(q *request) (labels map[string]string, err error) {
	if len(q.session.Labels) == 0 || q.info.Subresource != "" {
		return labels, nil
	}
	isOwner, err := p.isOwner(q)
	if isOwner || err != nil {
		return labels, err
	}
	return q.session.Labels, nil
}

// readBody returns the whole body. A refusal says what is wrong with it.
func (p *Proxy) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	connection, rest := http.NewResponseController(w), r.Body
	_ = connection.SetReadDeadline(time.Now().Add(p.bodyTimeout)) // Only test writers have no deadlines.
	body, err := io.ReadAll(http.MaxBytesReader(w, rest, maxObjectBytes))
	if err == nil {
		// From now on the server reads, to notice when the client hangs up. After an error it
		// reads the rest of the body, and the deadline keeps it from waiting for that.
		_ = connection.SetReadDeadline(time.Time{})
		return body, nil
	}
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		_, _ = io.CopyN(io.Discard, rest, maxDrainBytes) // The request is refused in any case.
		return nil, refusal(http.StatusRequestEntityTooLarge, "the object is larger than %d bytes", maxObjectBytes)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, refusal(http.StatusRequestTimeout, "the body did not come within %s", p.bodyTimeout)
	}
	return nil, refusal(http.StatusBadRequest, "read the object: %v", err)
}

// refusalOfInvalidBody returns the refusal of a body to which package ownership cannot add an owner.
func refusalOfInvalidBody(err error) error {
	if _, unreadable := errors.AsType[*ownership.UnreadableError](err); unreadable {
		return refusal(http.StatusUnsupportedMediaType, "%v", err)
	}
	return refusal(http.StatusBadRequest, "%v", err)
}
