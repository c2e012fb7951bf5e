/**
 * The page's policy allows no style that stands in a document, and xterm.js makes its own that way. Here it is given, for each
 * `style` element that it makes, one whose text becomes a style sheet of the document: that is script's doing, and as such allowed.
 */

let isDone = false;

/** Has an attribute `style` set by script as script's style. Colours of 24 bits and the least contrast are set that way. */
function allowAttributes(): void {
  const usual = HTMLElement.prototype.setAttribute;
  HTMLElement.prototype.setAttribute = function (this: HTMLElement, name: string, value: string) {
    if (name === "style") this.style.cssText = value;
    else usual.call(this, name, value);
  };
}

export function allowStyles(): void {
  if (isDone) return;
  isDone = true;
  allowAttributes();
  const usual = document.createElement.bind(document);
  document.createElement = ((name: string, options?: ElementCreationOptions) =>
    name === "style" ? sheetElement(usual("span")) : usual(name, options)) as typeof document.createElement;
}

/** An element without content, whose text is a style sheet for as long as it is there. */
function sheetElement(element: HTMLElement): HTMLElement {
  const sheet = new CSSStyleSheet();
  element.hidden = true;
  document.adoptedStyleSheets.push(sheet);
  Object.defineProperty(element, "textContent", { get: () => "", set: (text: string) => sheet.replaceSync(text) });
  Object.defineProperty(element, "remove", {
    value: () => {
      document.adoptedStyleSheets = document.adoptedStyleSheets.filter((one) => one !== sheet);
      Element.prototype.remove.call(element);
    },
  });
  return element;
}
