package proxy

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/ensign-operator/ensign/internal/kubeapi/proxy/ownership"
)

const (
	// maxObjectBytes is the API server's own limit for the body of a request that
	// writes an object.
	maxObjectBytes = 3 << 20
	// maxDrainBytes is how much more is read of a larger one, since a client that is
	// cut off while it sends does not see why.
	maxDrainBytes = 16 << 20
)

// own makes what the request writes carry its owner. Where it must be known for that what
// stands now, that is looked up; where the look fails, so does the request.
func (p *Proxy) own(w http.ResponseWriter, q *request) error {
	owned, err := p.ownable(q)
	if err != nil || !owned {
		return err
	}
	body, err := p.readBody(w, q.Request)
	if err != nil {
		return err
	}
	contentType := q.Header.Get("Content-Type")
	write, err := ownership.Parse(q.info.Verb, contentType, body)
	if err != nil {
		return refusalOfBody(err)
	}
	target := ownership.Target{Owner: q.session.Owner, Namespace: q.namespace(), Name: q.info.Name}
	var live map[string]any
	switch write.Needs(target) {
	case ownership.NeedsMetadata:
		live, err = p.upstream.Metadata(q.Context(), q.resource(), q.namespace(), q.info.Name)
	case ownership.NeedsObject:
		live, err = p.upstream.Whole(q.Context(), q.resource(), q.namespace(), q.info.Name)
	}
	switch {
	case apierrors.IsMethodNotSupported(err):
		// What can't be read is not stored: it has no owner.
	case err != nil:
		return refusalOf(fmt.Errorf("look at the object to see whom it belongs to, before it is written: %w", err))
	default:
		if body, contentType, err = write.AddOwner(target, live); err != nil {
			return refusalOfBody(err)
		}
	}
	q.replaceBody(body, contentType)
	return nil
}

// ownable reports whether the request writes an object that can have an owner.
func (p *Proxy) ownable(q *request) (bool, error) {
	if !p.inject || !q.info.IsResourceRequest || isReview(q.info.APIGroup) {
		return false, nil
	}
	switch whole := q.info.Subresource == ""; {
	case q.info.Verb == "update", q.info.Verb == "patch":
		// Kubernetes' own kinds take metadata too from what writes a status.
		return q.info.Name != "" && (whole || q.info.Subresource == "status"), nil
	case q.info.Verb == "create" && whole:
		kind, err := p.upstream.Kind(q.Context(), q.resource())
		if err != nil {
			return false, refusalOf(err)
		}
		return !kind.Virtual, nil
	default:
		return false, nil
	}
}

func (p *Proxy) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	connection, rest := http.NewResponseController(w), r.Body
	_ = connection.SetReadDeadline(time.Now().Add(p.bodyTimeout)) // A writer that knows no deadlines has no slow client.
	body, err := io.ReadAll(http.MaxBytesReader(w, rest, maxObjectBytes))
	if err == nil {
		// From here on the server itself reads, to see the client hang up. After an error it
		// reads what is left of the body, and must not wait for it.
		_ = connection.SetReadDeadline(time.Time{})
		return body, nil
	}
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		_, _ = io.CopyN(io.Discard, rest, maxDrainBytes) // What fails here has been refused anyway.
		return nil, refusal(http.StatusRequestEntityTooLarge, "the object is larger than %d bytes", maxObjectBytes)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, refusal(http.StatusRequestTimeout, "the body did not come within %s", p.bodyTimeout)
	}
	return nil, refusal(http.StatusBadRequest, "read the object: %v", err)
}

func refusalOfBody(err error) error {
	if _, unreadable := errors.AsType[*ownership.UnreadableError](err); unreadable {
		return refusal(http.StatusUnsupportedMediaType, "%v", err)
	}
	return refusal(http.StatusBadRequest, "%v", err)
}
