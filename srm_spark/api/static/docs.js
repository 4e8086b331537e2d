"use strict";
window.addEventListener("load", function () {
  // What changes something needs this header, which no page of another site can send.
  function marked(request) {
    request.headers["X-Requested-With"] = "docs";
    return request;
  }
  const url = document.getElementById("docs").dataset.openapi;
  window.SwaggerUIBundle({ url, dom_id: "#docs", deepLinking: true, requestInterceptor: marked });
});
