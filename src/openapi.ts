// The entry point `gatehouse-http/openapi`: a description of routes for other tools.
export { openApi, type OpenApiDocument } from './options/openapi/openapi.ts';
export type { OpenApiDetails, OpenApiInfo, OperationDetails } from './options/openapi/details.ts';
