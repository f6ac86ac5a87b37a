// SPDX-License-Identifier: Apache-2.0
// Browsers start no worker on a page that was opened from a file, so search would find nothing
// there. This runs the worker's script in a hidden frame instead.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.srcdoc = "<!doctype html>";
      this.ready = new Promise(done => {
        frame.onload = done;
      }).then(() => {
        this.scope = frame.contentWindow;
        this.scope.postMessage = data => this.dispatchEvent(new MessageEvent("message", {data}));
        this.scope.importScripts = (...urls) => Promise.all(urls.map(each => this.load(each)));
        return this.load(url);
      });
      document.documentElement.append(frame);
    }

    load(url) {
      return new Promise((done, failed) => {
        const script = this.scope.document.createElement("script");
        script.src = url;
        script.onload = done;
        script.onerror = failed;
        this.scope.document.head.append(script);
      });
    }

    postMessage(data) {
      this.ready.then(() => this.scope.dispatchEvent(new MessageEvent("message", {data})));
    }
  };
}
