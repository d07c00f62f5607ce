// What a page of the portal is, as plain values; and whatever is in it that did not come from a template.

const ELEMENTS = new Set((
    "html head meta link title script body a header nav main footer section article div span p h1 h2 h3 h4 ul ol " +
    "li dl dt dd table thead tbody tr th td b strong code pre bdi time details summary noscript form label input " +
    "select option svg g rect circle path text image").split(" "));
const SCRIPTS = /^(\.\.\/)*(as-of\.js|static\/portal\.js)$/;
const NEVER = new Set("style srcdoc action formaction ping target background xlink:href poster data".split(" "));
const LEADS_OUT = /^(https?:\/\/[^@\\]*|mailto:.*)$/;
const ABSOLUTE = /^\s*([a-z][a-z0-9+.-]*:|\/\/|\\)/i;

// `page` is a document, shown or only parsed. Scripts of the search come while a page is used.
function faults(page) {
    const found = [], ids = new Set();
    for (const one of page.querySelectorAll("*")) {
        // The text of a page for each of its elements takes longer than all else: only of what is wrong.
        const name = one.localName, at = { toString: () => one.outerHTML.slice(0, 160) };
        if (!ELEMENTS.has(name)) found.push("an element of a stranger: " + at);
        if (name === "script" && (one.textContent || !SCRIPTS.test(one.getAttribute("src") || "")))
            found.push("a script: " + at);
        if (one.id && ids.has(one.id)) found.push("an id twice: " + one.id);
        ids.add(one.id);
        for (const { name: key, value } of one.attributes) {
            if (key.startsWith("on") || NEVER.has(key)) found.push("an attribute of a stranger: " + at);
            if (key !== "href" && key !== "src") continue;
            const out = name === "a" && LEADS_OUT.test(value);
            if (ABSOLUTE.test(value) && !out) found.push("an address: " + at);
            if (out && !one.relList.contains("noopener")) found.push("a link that hands over the page: " + at);
        }
    }
    for (const what of ["main", "h1", "footer", "head > title"]) {
        const count = page.querySelectorAll(what).length;
        if (count !== 1) found.push(`${count} times ${what}`);
    }
    if (page.compatMode !== "CSS1Compat") found.push("no doctype");
    return found;
}

const all = (what, where = document) => [...where.querySelectorAll(what)];
const text = one => one ? one.textContent.replace(/\s+/g, " ").trim() : "";
// The address of a link of SVG is not a string.
const leads = one => typeof one.href === "string" ? one.href : new URL(one.href.baseVal, document.baseURI).href;
const table = one => all("tbody tr", one).map(row => all("td", row).map(text));
const named = one => Object.fromEntries(all(":scope > div", one).map(each =>
    [text(each.querySelector("dt")), text(each.querySelector("b"))]));

function facts() {
    const sticks = one => one.getBoundingClientRect().right > innerWidth + 1 && !one.closest(".scroll");
    const called = one => text(one) || one.getAttribute("aria-label") || (one.labels && one.labels.length);
    return {
        title: document.title,
        h1: text(document.querySelector("h1")),
        asOf: text(document.getElementById("as-of")),
        words: text(document.querySelector("main")).length,
        said: text(document.querySelector("main")).slice(0, 200),
        links: all("a[href]").map(one => [one.getAttribute("href"), leads(one), text(one)]),
        ids: all("[id]").map(one => one.id),
        tooWide: document.documentElement.scrollWidth > document.documentElement.clientWidth
            ? all("main *").filter(sticks).map(one => one.outerHTML.slice(0, 120)).slice(0, 3) : [],
        nameless: all("a[href], button, input, select, summary").filter(one => !called(one)).map(one => one.outerHTML),
        faults: faults(document),
        fired: window.fired || null,
        product: location.pathname.includes("/products/") ? product() : null,
    };
}

// What the page of a product says of how it stands.
function product() {
    const of = (id, what) => all(`section[aria-labelledby="${id}"] ${what}`);
    return {
        state: text(document.querySelector(".lead .state")),
        answer: text(document.querySelector(".answer p")).replace(/ See the incident$/, ""),
        promises: of("promises", "article").map(one => ({
            name: text(one.querySelector("h3 bdi")),
            marks: all("h3 .state", one).map(text),
            cells: all(".deliveries title", one).map(text),
            said: all(":scope > p", one).map(text),
            figures: named(one.querySelector(".figures")),
            notes: all(".figures dd span", one).map(text),
            odd: all("details.odd", one).flatMap(table),
            rows: all("details.all", one).flatMap(table),
        })),
        objects: of("data", "article").map(one => ({
            name: text(one.querySelector("h3")),
            groups: Object.fromEntries(all("details.clauses", one).map(each => [text(each.querySelector("summary")), table(each)])),
            columns: all(".schema tbody tr", one).map(row => text(row.querySelector("code"))),
        })),
        open: of("open", "li > a").map(one => [text(one), one.getAttribute("href")]),
        past: of("past", "li > a").map(one => [text(one), one.getAttribute("href")]),
    };
}
