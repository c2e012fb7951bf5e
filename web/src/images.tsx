/** The images that sandboxes are made from: listed, pulled and removed. */

import { useEffect, useRef, useState } from "preact/hooks";
import { Refused, ask, events, json, query } from "./api.js";
import { bytes } from "./format.js";
import { type Loaded, useLoaded } from "./live.js";
import { Confirm, Empty, Failure, Field, Loading, useTitle } from "./parts.js";
import type { Image, Problem, PullProgress } from "./types.js";

/** Loads the list of images. */
export function useImages(): Loaded<Image[]> {
  return useLoaded(async (signal) => (await json<{ images: Image[] }>("/v1/images", { signal })).images, []);
}

export function Images() {
  const { value, failure, again } = useImages();
  const [leaving, remove] = useState<Image>();
  useTitle("Images");
  return (
    <section aria-labelledby="images-title">
      <div class="title-row">
        <h1 id="images-title">Images {value ? <span class="count">{value.length}</span> : null}</h1>
      </div>
      <Pull pulled={again} />
      <Failure error={failure} again={again} />
      {!value && !failure ? <Loading what="images" /> : null}
      {value?.length === 0 ? (
        <Empty title="There is no image yet.">
          <p>Without one a sandbox is made of the server's own programs. Pull one above, if the server's operator lets you, or import one from a terminal: <code>docker save app:1 | eyot --server {location.origin} image import -</code></p>
        </Empty>
      ) : null}
      {value && value.length > 0 ? (
        <table class="images">
          <thead>
            <tr>
              <th scope="col">Name</th>
              <th scope="col">Size</th>
              <th scope="col">Layers</th>
              <th scope="col">Made</th>
              <th scope="col">Digest</th>
              <th scope="col"><span class="hidden">Actions</span></th>
            </tr>
          </thead>
          <tbody>{value.map((image) => <Row key={image.name} image={image} remove={() => remove(image)} />)}</tbody>
        </table>
      ) : null}
      {leaving ? <Remove image={leaving} close={() => remove(undefined)} done={again} /> : null}
    </section>
  );
}

function Row({ image, remove }: { image: Image; remove: () => void }) {
  return (
    <tr>
      <th scope="row">{image.name}</th>
      <td data-label="Size" class="figure">{bytes(image.size_bytes)}</td>
      <td data-label="Layers" class="figure">{image.complete ? image.layers : "incomplete"}</td>
      <td data-label="Made">{image.created?.slice(0, 10) ?? "–"}</td>
      <td data-label="Digest"><code title={image.digest}>{image.digest.replace("sha256:", "").slice(0, 12)}</code></td>
      <td class="row-actions">
        <button type="button" class="danger plain" onClick={remove} aria-label={`Remove ${image.name}`}>Remove</button>
      </td>
    </tr>
  );
}

/** Pulls an image, and shows how far it is. Leaving the view ends the pull. */
function Pull({ pulled }: { pulled: () => void }) {
  const [name, set] = useState("");
  const [progress, show] = useState<PullProgress>();
  const [isBusy, busy] = useState(false);
  const [error, fail] = useState<unknown>();
  const stop = useRef<AbortController | undefined>(undefined);
  useEffect(() => () => stop.current?.abort(), []);
  const pull = async (event: Event) => {
    event.preventDefault();
    const { signal } = (stop.current = new AbortController());
    busy(true);
    fail(undefined);
    try {
      for await (const { event, data } of events(`/v1/images/pull${query({ name: name.trim() })}`, { method: "POST", signal })) {
        if (event === "progress") show(data as PullProgress);
        if (event === "problem") throw new Refused(data as Problem);
      }
      set("");
      pulled();
    } catch (failure) {
      if (!signal.aborted) fail(failure);
    }
    busy(false);
    show(undefined);
  };
  return (
    <form class="pull" onSubmit={pull}>
      <Field label="Pull an image">
        {(id) => <input id={id} value={name} required readOnly={isBusy} onInput={(event) => set(event.currentTarget.value)} placeholder="such as node:22" autocomplete="off" spellcheck={false} />}
      </Field>
      {/* Two buttons, not one that changes: a click on the one must not be carried out by the other. */}
      {isBusy
        ? <button key="cancel" type="button" onClick={() => stop.current?.abort()}>Cancel</button>
        : <button key="pull" type="submit" class="primary">Pull</button>}
      {isBusy ? (
        <p class="pulling" role="status">
          <progress aria-label={`Pull of ${name}`} max={progress?.total_bytes} value={progress?.total_bytes ? progress.received_bytes : undefined} />
          <span class="figure">{progress ? `${bytes(progress.received_bytes)} of ${bytes(progress.total_bytes)}` : "asking the registry…"}</span>
        </p>
      ) : null}
      <Failure error={error} />
    </form>
  );
}

function Remove({ image, close, done }: { image: Image; close: () => void; done: () => void }) {
  const remove = async () => {
    await ask(`/v1/images${query({ name: image.name })}`, { method: "DELETE" });
    done();
  };
  return (
    <Confirm title={`Remove ${image.name}?`} verb="Remove" close={close} act={remove}>
      <p>Its layers are removed with it, unless another image has them. An image that a sandbox is made over is not removed.</p>
    </Confirm>
  );
}
