"use strict";
// Filter by group and topic, jump to one, sort by a column. Without it the page is all there.
(() => {
  const UNITS = {
    ms: 1, s: 1e3, min: 6e4, h: 36e5, d: 864e5,
    B: 1, kB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12, PB: 1e15, "%": 1,
  };
  const ABSENT = "-";
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const made = (name, properties) => Object.assign(document.createElement(name), properties);
  const textOf = (each) =>
    [each.textContent, ...all("[title]", each).map((part) => part.title)].join(" ").toLowerCase();

  // A number as it is shown: "1,065", ">= 7 min 36 s", "12.3 kB".
  const numberOf = (text) => {
    const parts = [...text.replaceAll(",", "").matchAll(/(-?\d+(?:\.\d+)?) ?([a-zA-Z]+|%)?/g)];
    return parts.reduce((sum, [, number, unit]) => sum + Number(number) * (UNITS[unit] ?? 1), 0);
  };

  const sortable = (table) => {
    const body = table.tBodies[0];
    const rows = [...body.rows];
    const heads = all("thead th", table);
    heads.forEach((head, place) => {
      const button = made("button", { type: "button", textContent: head.textContent });
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const order = { ascending: "descending", descending: "" }[head.ariaSort] ?? "ascending";
        heads.forEach((each) => each.removeAttribute("aria-sort"));
        if (!order) return body.append(...rows);
        head.ariaSort = order;
        const sign = order === "ascending" ? 1 : -1;
        const known = rows.map((row) => [row, row.cells[place].textContent.trim()]);
        known.sort(([, one], [, other]) => {
          if (one === ABSENT || other === ABSENT) return (one === ABSENT) - (other === ABSENT);
          return head.classList.contains("n")
            ? sign * (numberOf(one) - numberOf(other))
            : sign * one.localeCompare(other, "en", { numeric: true });
        });
        body.append(...known.map(([row]) => row));
      });
    });
  };

  const isOfGroups = (table) =>
    !table.closest(".story") &&
    all("thead th", table).some((head) => ["Group", "Topic"].includes(head.textContent));
  const filtered = all("table").filter(isOfGroups);
  const rows = filtered.flatMap((table) => [...table.tBodies[0].rows]);
  const findings = all(".finding");
  const stories = all(".story");
  const names = new Set(
    filtered.flatMap((table) =>
      all("thead th", table).flatMap((head, place) =>
        ["Group", "Topic"].includes(head.textContent)
          ? [...table.tBodies[0].rows].map((row) => row.cells[place].textContent.trim())
          : [],
      ),
    ),
  );
  names.delete(ABSENT);

  const form = made("form", { className: "tools", ariaLabel: "Filter" });
  form.setAttribute("role", "search");
  const label = made("label", { htmlFor: "filter", textContent: "Group or topic" });
  const input = made("input", { id: "filter", type: "search", autocomplete: "off" });
  const list = made("datalist", { id: "names" });
  list.append(...[...names].sort().slice(0, 500).map((value) => made("option", { value })));
  input.setAttribute("list", list.id);
  const jump = made("button", { type: "submit", textContent: "Jump" });
  const shown = made("output", { htmlFor: "filter" });
  form.append(label, input, list, jump, shown);
  document.querySelector("nav").after(form);

  const counted = (each, one, many) => {
    const number = each.filter((part) => !part.hidden).length;
    return `${number.toLocaleString("en")} ${number === 1 ? one : many}`;
  };
  const filter = () => {
    const wanted = input.value.trim().toLowerCase();
    for (const each of [...rows, ...findings, ...stories]) {
      // A command of a finding may serve other groups, too: its message says whose it is.
      const said = each.querySelector(":scope > .message") ?? each;
      each.hidden = wanted !== "" && !textOf(said).includes(wanted);
    }
    for (const rule of all("article.rule")) {
      rule.hidden = all(".finding", rule).every((each) => each.hidden);
      for (const rest of all(".rest", rule)) rest.open = wanted !== "";
    }
    const counts = [
      counted(findings, "finding", "findings"),
      counted(rows, "row", "rows"),
      counted(stories.filter((each) => each.matches(".topic")), "topic", "topics"),
      counted(stories.filter((each) => !each.matches(".topic")), "group's story", "groups' stories"),
    ];
    shown.value = wanted ? counts.join(", ") : "";
  };
  input.addEventListener("input", filter);

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const wanted = input.value.trim().toLowerCase();
    if (!wanted) return;
    const nameOf = (each) => textOf(each.querySelector("h3 > :last-child, h3")).trim();
    const isNamed = (each) => nameOf(each).split(" ").includes(wanted);
    const story = stories.find(isNamed) ?? stories.find((each) => nameOf(each).includes(wanted));
    const row = rows.find((each) => !each.hidden);
    const target = story ? story.querySelector("summary") : row;
    if (!target) return;
    if (story) story.open = true;
    else target.tabIndex = -1;
    target.focus();
    target.scrollIntoView({ block: "start" });
  });

  all("table").forEach(sortable);
})();
