"use strict";
window.addEventListener("load", function () {
  window.SwaggerUIBundle({ url: "/openapi.json", dom_id: "#docs", deepLinking: true });
});
