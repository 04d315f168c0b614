#!/usr/bin/env python3
"""Opens report pages in headless Chromium, both themes, on a phone and a wide screen: pictures, sideways scrolling, axe-core.

    campaigns/report-pages.py page.html … --out target/report-pages

Needs node, npm and chromium (or CHROMIUM=path). puppeteer-core and axe-core are installed below the target folder, never into the
project. Exits with 1 if a page scrolls sideways or axe-core finds something serious.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys

PACKAGES = ["puppeteer-core@24", "axe-core@4"]

SCRIPT = r"""
const fs = require('fs'), path = require('path'), puppeteer = require('puppeteer-core');
const axe = fs.readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
(async () => {
  const [chromium, out, height, ...files] = process.argv.slice(2);
  const browser = await puppeteer.launch({ executablePath: chromium, args: ['--no-sandbox'] });
  let bad = 0;
  for (const file of files) for (const theme of ['light', 'dark']) for (const width of [400, 1400]) {
    const page = await browser.newPage();
    await page.setBypassCSP(true); // axe-core is put into the page, which itself allows no script.
    await page.setViewport({ width, height: 900 });
    await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: theme }]);
    await page.goto('file://' + path.resolve(file));
    const name = `${path.basename(file, '.html')}-${theme}-${width}`;
    const sideways = await page.evaluate(() => document.documentElement.scrollWidth > window.innerWidth);
    const full = await page.evaluate(() => document.documentElement.scrollHeight);
    const shown = height === '0' ? full : Math.min(full, Number(height));
    await page.screenshot({ path: path.join(out, name + '.png'), clip: { x: 0, y: 0, width, height: shown }, captureBeyondViewport: true });
    await page.evaluate(() => document.querySelectorAll('details').forEach(d => { d.open = true; }));
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => axe.run());
    const serious = violations.filter(v => ['serious', 'critical'].includes(v.impact));
    const found = violations.map(v => `${v.impact} ${v.id} (${v.nodes.length}): ${v.nodes[0].html.slice(0, 100)}`);
    console.log(`${name}: ${sideways ? 'scrolls sideways, ' : ''}axe: ${found.join('; ') || 'nothing'}`);
    bad += serious.length + (sideways ? 1 : 0);
    await page.close();
  }
  await browser.close();
  process.exit(bad ? 1 : 0);
})();
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="+", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("target/report-pages"))
    parser.add_argument("--height", type=int, default=0, help="pixels from the top of each page; 0: all of it")
    args = parser.parse_args()
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None or shutil.which("npm") is None:
        print("needs chromium, node and npm; install them, or name the browser with CHROMIUM", file=sys.stderr)
        return 64
    tools = args.out / "tools"
    tools.mkdir(parents=True, exist_ok=True)
    if not (tools / "node_modules" / "axe-core").exists():
        (tools / "package.json").write_text("{}\n")
        subprocess.run(["npm", "install", "--silent", "--no-fund", *PACKAGES], cwd=tools, check=True)
    script = tools / "pages.cjs"
    script.write_text(SCRIPT)
    return subprocess.run(["node", script, chromium, args.out, str(args.height), *args.pages], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
