/**
 * Importing it fails. Modules are evaluated in the order of their imports, after all of them were linked: nothing that
 * follows runs.
 */

throw null;

export {};
