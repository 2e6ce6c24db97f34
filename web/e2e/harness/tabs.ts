// Tabs of a real browser that complain: about a policy that was broken, an error on the page or in its console, a
// request to another host, a dialog, or a script that got in.

import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Browser, type BrowserContext, type ConsoleMessage, chromium, type Page } from 'playwright-core';

const ARGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--no-first-run',
];

/// A page that has not shown it by then is not going to.
const PATIENCE = 15_000;

export interface TabOptions {
  width?: number;
  height?: number;
  scheme?: 'light' | 'dark';
}

export async function openBrowser(): Promise<Browser> {
  return chromium.launch({
    executablePath: process.env.GIGA_CHROMIUM ?? '/usr/bin/chromium',
    args: ARGS,
  });
}

export class Tab {
  readonly complaints: string[] = [];
  private readonly tolerated: RegExp[] = [];

  private constructor(
    readonly page: Page,
    private readonly context: BrowserContext,
    readonly origin: string,
  ) {}

  static async open(browser: Browser, origin: string, options: TabOptions = {}): Promise<Tab> {
    const { width = 1280, height = 900, scheme = 'dark' } = options;
    const context = await browser.newContext({ viewport: { width, height }, colorScheme: scheme });
    context.setDefaultTimeout(PATIENCE);
    const page = await context.newPage();
    const tab = new Tab(page, context, origin);
    await tab.watch();
    return tab;
  }

  /// Another tab of the same browser, which shares what tabs share.
  async sibling(): Promise<Page> {
    return this.context.newPage();
  }

  async goto(path: string): Promise<void> {
    await this.page.goto(this.origin + path);
  }

  /// What the test does on purpose is no reason to complain.
  tolerate(...patterns: RegExp[]): void {
    this.tolerated.push(...patterns);
  }

  /// A picture of what a test that failed saw.
  async keep(name: string): Promise<void> {
    const file = `${name.replace(/[^a-z0-9]+/gi, '-').slice(0, 80)}-${this.page.viewportSize()?.width}.png`;
    await this.page.screenshot({ path: join(tmpdir(), 'giga-e2e-failed', file) });
  }

  async close(): Promise<string[]> {
    await this.context.close();
    return this.complaints;
  }

  private async watch(): Promise<void> {
    const { page, context } = this;
    await context.exposeBinding('__complain', (_, text: string) => this.complain(text));
    await context.addInitScript(() => {
      const tell = (text: string) => {
        (window as unknown as { __complain(text: string): void }).__complain(text);
      };
      document.addEventListener('securitypolicyviolation', (event) => {
        tell(`the policy was broken: ${event.violatedDirective} by ${event.blockedURI || 'inline'}`);
      });
      Object.defineProperty(window, '__pwned', {
        set: (value) => tell(`a script got in: ${String(value)}`),
      });
    });
    page.on('pageerror', (error) => this.complain(`an error that nobody caught: ${error.message}`));
    page.on('console', (message) => this.hear(message));
    page.on('dialog', (dialog) => {
      if (dialog.type() === 'beforeunload') return void dialog.accept();
      this.complain(`a dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    context.on('request', (request) => {
      const url = new URL(request.url());
      if (!['blob:', 'data:'].includes(url.protocol) && url.origin !== this.origin) {
        this.complain(`a request to another origin: ${request.url()}`);
      }
    });
  }

  private hear(message: ConsoleMessage): void {
    if (message.type() !== 'error') return;
    this.complain(`on the console: ${message.text()} (${message.location().url})`);
  }

  private complain(text: string): void {
    if (!this.tolerated.some((pattern) => pattern.test(text))) this.complaints.push(text);
  }
}
